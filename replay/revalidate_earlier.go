package replay

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// EarlierJudgments are the verdicts of a revalidation that was written into a file (see RevalidationWriter), against
// which a later one of the same evidence is held.
type EarlierJudgments struct {
	source    EvidenceSource
	exchanges map[exchange.ID]earlierJudged
}

type earlierJudged struct {
	status   exchange.VerdictStatus
	reason   string
	digest   string
	verdicts map[nthGate]earlierVerdict
}

// nthGate tells the verdicts of one gate with several parameters apart.
type nthGate struct {
	gate string
	n    int
}

type earlierVerdict struct {
	status  exchange.VerdictStatus
	version int
}

// ReadEarlier reads the file that a revalidation was written into, exchange by exchange.
func ReadEarlier(path string) (*EarlierJudgments, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, earlierError(path, err)
	}
	defer f.Close()
	e := &EarlierJudgments{exchanges: map[exchange.ID]earlierJudged{}}
	if err := e.read(json.NewDecoder(f)); err != nil {
		return nil, earlierError(path, err)
	}
	return e, nil
}

func earlierError(path string, err error) error {
	return &exchange.Error{Op: "read earlier judgment", Object: path, Side: exchange.SideClient, Cause: err,
		Hint: "replay --revalidate --output FILE.json writes one"}
}

// read reads the object key by key. The exchanges are most of it and come one by one.
func (e *EarlierJudgments) read(d *json.Decoder) error {
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return fmt.Errorf("%w: it is no JSON object", exchange.ErrUsage)
	}
	var head struct {
		schema int
		mode   string
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		switch key {
		case "schema":
			err = d.Decode(&head.schema)
		case "mode":
			err = d.Decode(&head.mode)
		case "source":
			err = d.Decode(&e.source)
		case "cases":
			err = e.readCases(d)
		default:
			var skip json.RawMessage
			err = d.Decode(&skip)
		}
		if err != nil {
			return fmt.Errorf("field %v: %w", key, err)
		}
	}
	switch {
	case head.mode != ModeRevalidation:
		return fmt.Errorf("%w: it is no revalidation", exchange.ErrUsage)
	case head.schema > RevalidateSchema:
		return fmt.Errorf("%w: its schema %d is newer than %d", exchange.ErrDamaged, head.schema, RevalidateSchema)
	}
	if _, err := d.Token(); err != nil {
		return fmt.Errorf("it was cut: %w", err)
	}
	return nil
}

func (e *EarlierJudgments) readCases(d *json.Decoder) error {
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return fmt.Errorf("%w: want a list", exchange.ErrUsage)
	}
	for d.More() {
		var j Judged
		if err := d.Decode(&j); err != nil {
			return err
		}
		was := earlierJudged{status: j.Status, reason: j.Reason, verdicts: make(map[nthGate]earlierVerdict, len(j.Verdicts))}
		if len(j.Evidence) > 0 {
			was.digest = j.Evidence[0].Digest
		}
		nth := map[string]int{}
		for _, g := range j.Verdicts {
			was.verdicts[nthGate{g.Gate, nth[g.Gate]}] = earlierVerdict{g.Status, g.Version}
			nth[g.Gate]++
		}
		e.exchanges[j.ID] = was
	}
	_, err := d.Token()
	return err
}

// RevalidationWriter writes a revalidation as one JSON document: its exchanges as they are judged, and then what they
// come to. It is what ReadEarlier reads.
type RevalidationWriter struct {
	w     io.Writer
	begun bool
	line  []byte
}

// NewRevalidationWriter writes to w, which should buffer.
func NewRevalidationWriter(w io.Writer) *RevalidationWriter { return &RevalidationWriter{w: w} }

// Add writes one judged exchange.
func (w *RevalidationWriter) Add(j *Judged) (err error) {
	w.line = w.line[:0]
	if w.begun {
		w.line = append(w.line, ",\n"...)
	} else {
		w.line = append(w.line, "{\"cases\":[\n"...)
		w.begun = true
	}
	if w.line, err = appendJSON(w.line, j); err != nil {
		return err
	}
	_, err = w.w.Write(w.line)
	return err
}

// End writes what the exchanges come to.
func (w *RevalidationWriter) End(r *Revalidated) error {
	head := "],\n"
	if !w.begun {
		head = "{\"cases\":[],\n"
	}
	b, err := appendJSON([]byte(head), r)
	if err != nil {
		return err
	}
	b = append(b[:len(head)], b[len(head)+1:]...) // the object goes on
	_, err = w.w.Write(append(b, '\n'))
	return err
}
