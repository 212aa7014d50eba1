package engines

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// FingerprintVersion is the version of the set of fields below.
const FingerprintVersion = 1

// fingerprint tells the known fields of a deployment from the unknown ones. Address, time, evidence and what the user
// asked for have no part in it: they do not change what is served.
func fingerprint(d *exchange.Deployment) *exchange.Fingerprint {
	values := map[string]*string{
		"engine": stated(d.Engine), "engine_version": stated(d.Version),
		"model": d.Model, "model_root": d.ModelRoot, "parameters": number(d.Parameters), "quantization": d.Quantization,
		"window": number(d.Window), "slots": number(d.Slots), "gpus": number(d.GPUs), "draft_method": d.DraftMethod,
		"device": d.ObservedDevice, "weights_digest": d.WeightsDigest,
	}
	values["drafting"] = nil
	if d.Drafting != nil {
		values["drafting"] = pointer(strconv.FormatBool(*d.Drafting))
		if !*d.Drafting {
			values["draft_method"] = pointer("none")
		}
	}
	if d.Inner != nil {
		values["inner_engine"], values["inner_version"] = stated(d.Inner.Engine), stated(d.Inner.Version)
	}
	if d.Launch != "" { // of others it is not unknown but not to be had
		values["launch"] = &d.Launch
	}
	f := &exchange.Fingerprint{Version: FingerprintVersion, Known: map[string]string{}, Unknown: []string{}}
	for field, v := range values {
		if v == nil {
			f.Unknown = append(f.Unknown, field)
		} else {
			f.Known[field] = *v
		}
	}
	slices.Sort(f.Unknown)
	f.Digest = digest(f.Known)
	return f
}

// WithWeights is a deployment that has loaded the model file of w, by the word of the user. Its digest is the weights'
// identity; what the engine tells of quantization and parameters stays. The fingerprint is taken anew, in the copy only.
func WithWeights(d exchange.Deployment, w exchange.Weights) exchange.Deployment {
	d.Weights = &w
	if w.Digest != "" {
		d.WeightsDigest = &w.Digest
	}
	if d.Quantization == nil {
		d.Quantization = w.Quantization
	}
	if d.Parameters == nil {
		d.Parameters = w.Parameters
	}
	d.Fingerprint = fingerprint(&d)
	return d
}

// WithLaunch is a deployment of which we know what was started: its digest, "" for unknown. The fingerprint is taken anew,
// in the copy only.
func WithLaunch(d exchange.Deployment, digest string) exchange.Deployment {
	d.Launch = digest
	d.Fingerprint = fingerprint(&d)
	return d
}

// digest is the first 12 hex digits of the sha256 of the sorted, compact JSON object.
func digest(known map[string]string) string {
	b, err := json.Marshal(known)
	if err != nil { // strings always marshal
		return ""
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])[:12]
}

func stated(s string) *string {
	if s == "" || s == Unknown {
		return nil
	}
	return &s
}

func number(n *int64) *string {
	if n == nil {
		return nil
	}
	return pointer(strconv.FormatInt(*n, 10))
}

// Likeness is what two fingerprints say about each other, field by field, sorted.
type Likeness struct {
	Same      []string `json:"same"`
	Different []string `json:"different"`
	Open      []string `json:"open"` // unknown on one side or on both: neither same nor different
}

// Proven reports whether the two are known to be the same in every field.
func (l Likeness) Proven() bool { return len(l.Same) > 0 && len(l.Different) == 0 && len(l.Open) == 0 }

// Compare says which fields of two fingerprints are the same, which differ, and which cannot be told. A missing
// fingerprint leaves everything open.
func Compare(a, b *exchange.Fingerprint) Likeness {
	l := Likeness{Same: []string{}, Different: []string{}, Open: []string{}}
	all := map[string]bool{}
	for _, f := range []*exchange.Fingerprint{a, b} {
		if f == nil {
			continue
		}
		for field := range f.Known {
			all[field] = true
		}
		for _, field := range f.Unknown {
			all[field] = true
		}
	}
	for _, field := range slices.Sorted(maps.Keys(all)) {
		x, knownA := knownIn(a, field)
		y, knownB := knownIn(b, field)
		switch {
		case !knownA || !knownB:
			l.Open = append(l.Open, field)
		case x == y:
			l.Same = append(l.Same, field)
		default:
			l.Different = append(l.Different, field)
		}
	}
	return l
}

func knownIn(f *exchange.Fingerprint, field string) (string, bool) {
	if f == nil {
		return "", false
	}
	v, ok := f.Known[field]
	return v, ok
}
