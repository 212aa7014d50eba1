package replay

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"slices"
	"strings"
	"time"

	"github.com/benchproxy/benchproxy/internal/canon"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// HashScheme is the prefix of every workload hash: the version of the rules that make it.
const HashScheme = "w1:"

// AtUnknown is the instant of an item whose source tells none.
const AtUnknown = time.Duration(-1)

// Workload is an ordered list of requests to send.
type Workload struct {
	Name   string   // for people: the name of the run, or of the file without its directory
	Source string   // what it was read from: "run <id>", or the format of the file
	Items  []Item   // by At, those without an instant as they stood
	Notes  []string // what a reader of results must know: what was left out, moved or made up; one phrase each
}

// Item is one request of a workload.
type Item struct {
	ID           string        // of the recorded exchange, or what the file calls it; unique within the workload
	Conversation string        // items with the same one are turns of one conversation; a single request is alone in its own
	Turn         int           // within the conversation, from 0
	At           time.Duration // when it is meant to be sent, from the start of the workload, in whole microseconds; < 0 = unknown
	Method       string
	Target       string            // request target: path and query
	Headers      []exchange.Header // to send, in order: free of credentials, and of those that belong to one connection
	Body         []byte            // nil for none, and for one that is made when Payload is called; not to be changed
	Key          string            // request key, as exchange.Summary has it
	Response     string            // id of the recorded answer, where later turns may name it; "" when it is not known
	Origin       *exchange.Origin  // the recorded exchange it repeats; nil when there is none
	PromptTokens *int64            // as the source states it; nil when it does not
	OutputTokens *int64            // as the source states it; nil when it does not

	payload func() ([]byte, error) // makes or reads the body; nil when Body is it
	sum     [sha256.Size]byte      // of request and headers
}

// Payload is the body to send. It is to be asked for ahead of the instant of the send: for an item of a run it reads
// the store, for one of a trace it makes up the text. It may be called from any goroutine, and more than once.
func (it *Item) Payload() ([]byte, error) {
	if it.payload == nil {
		return it.Body, nil
	}
	return it.payload()
}

// Timed reports whether every item has an instant, so that the workload can be sent with recorded timing.
func (w *Workload) Timed() bool {
	return !slices.ContainsFunc(w.Items, func(it Item) bool { return it.At < 0 })
}

// Hash is "w1:" and 32 hex digits over the order of the items, the requests with the headers they are sent with, the
// instants and the conversations. Two workloads with one hash ask an engine for the same, at the same instants.
func (w *Workload) Hash() string {
	h := newHasher()
	for i := range w.Items {
		h.add(&w.Items[i])
	}
	return h.sum()
}

// hasher makes the hash of a workload item by item. Conversations count by the order in which they first appear, since
// their names may differ from file to file.
type hasher struct {
	h     hash.Hash
	talks map[string]uint64 // conversation -> its number
	next  uint64            // number of the next one
}

func newHasher() *hasher { return &hasher{h: sha256.New(), talks: map[string]uint64{}} }

func (h *hasher) add(it *Item) {
	talk, ok := h.talks[it.Conversation]
	if !ok || it.Conversation == "" { // without a name every item is a conversation of its own
		talk = h.next
		h.next++
		h.talks[it.Conversation] = talk
	}
	b := make([]byte, 0, sha256.Size+24)
	b = append(b, it.sum[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(max(it.At, AtUnknown)))
	b = binary.BigEndian.AppendUint64(b, talk)
	b = binary.BigEndian.AppendUint64(b, uint64(it.Turn))
	h.h.Write(b)
}

func (h *hasher) sum() string { return HashScheme + hex.EncodeToString(h.h.Sum(nil)[:16]) }

// identify fills in the key of an item and what the hash says of its request. body is its payload.
func (it *Item) identify(body []byte) {
	// The key is made with all the headers there are; those that take part in it are kept in an item.
	k := canon.RequestKey(&exchange.Request{Method: it.Method, Target: it.Target, Headers: it.Headers, Body: exchange.NewBody(body)})
	it.Key = k.Key
	h := sha256.New()
	h.Write(k.Canonical)
	for _, f := range it.Headers {
		fmt.Fprintf(h, "%d:%s%d:%s", len(f.Name), strings.ToLower(f.Name), len(f.Value), f.Value)
	}
	h.Sum(it.sum[:0])
}
