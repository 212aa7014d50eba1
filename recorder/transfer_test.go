package recorder

import (
	"bytes"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// sent is an exchange in the form in which it travels.
func sent(t testing.TB, x *exchange.Exchange, row *exchange.Summary) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := WriteExchange(&b, x, row); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestTransferKeepsEveryField fills exchange and row by reflection: a field that is forgotten comes back empty.
func TestTransferKeepsEveryField(t *testing.T) {
	r := rand.New(rand.NewPCG(51, 52))
	for range 100 {
		var x exchange.Exchange
		var row exchange.Summary
		fill(r, reflect.ValueOf(&x).Elem())
		fill(r, reflect.ValueOf(&row).Elem())
		row.Version = exchange.SummaryVersion
		b := sent(t, &x, &row)
		got, gotRow, err := ReadExchange(iotest.HalfReader(bytes.NewReader(b)))
		if err != nil {
			t.Fatal(err)
		}
		if d := same(&x, got) + cmp.Diff(row, gotRow); d != "" {
			t.Fatal(d)
		}
	}
}

func TestTransferOfBodies(t *testing.T) {
	long := streamed("{}", strings.Repeat("0123456789abcdef", 200_000)) // several pieces from one chunk
	cut := streamed(`{"a":1}`, "abc")
	cut.Response.Body.Size, cut.State = 10, exchange.StateTruncated
	none := streamed("")
	for name, x := range map[string]*exchange.Exchange{"long": long, "cut": cut, "none": none, "empty": {Masked: true}} {
		x.Masked = true
		got, _, err := ReadExchange(bytes.NewReader(sent(t, x, &exchange.Summary{})))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if d := same(x, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// TestTransferIsWholeOrAnError holds that no part of what was sent is taken for all of it, and no changed byte for what
// was sent.
func TestTransferIsWholeOrAnError(t *testing.T) {
	x := streamed(`{"a":1}`, "b", "cc")
	good := sent(t, x, &exchange.Summary{ID: x.ID})
	for n := range good {
		if _, _, err := ReadExchange(bytes.NewReader(good[:n])); !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, exchange.ErrDamaged) {
			t.Fatalf("the first %d of %d bytes give %v", n, len(good), err)
		}
		bad := bytes.Clone(good)
		bad[n] ^= 0x41
		if _, _, err := ReadExchange(bytes.NewReader(bad)); err == nil {
			t.Fatalf("byte %d was changed and nobody noticed", n)
		}
	}
	newer := append([]byte(transferName+" 2\n"), good[len(transferName)+3:]...)
	if _, _, err := ReadExchange(bytes.NewReader(newer)); !errors.Is(err, exchange.ErrDamaged) || !strings.Contains(err.Error(), "form 2, this build reads 1") {
		t.Errorf("a newer form gives %v", err)
	}
	for _, foreign := range []string{"<html>\n", strings.Repeat("x", 1<<20), transferName + " one\n"} {
		if _, _, err := ReadExchange(strings.NewReader(foreign)); !errors.Is(err, exchange.ErrDamaged) {
			t.Errorf("%.20q gives %v", foreign, err)
		}
	}
}

func TestTransferErrors(t *testing.T) {
	x := streamed("{}", "a")
	full := errors.New("full")
	for _, left := range []int{0, 400, len(sent(t, x, &exchange.Summary{})) - 1} {
		if err := WriteExchange(&limited{left: left, err: full}, x, &exchange.Summary{}); !errors.Is(err, full) {
			t.Errorf("a writer with room for %d bytes gives %v", left, err)
		}
	}
	infinite := exchange.Figures{"ttft_ms": {Value: 1, Basis: exchange.BasisMeasured}}
	infinite["x"] = exchange.Figure{Value: math.Inf(1), Basis: exchange.BasisMeasured}
	if err := WriteExchange(io.Discard, x, &exchange.Summary{Metrics: infinite}); err == nil {
		t.Error("a row that cannot be coded was sent")
	}
	if _, _, err := ReadExchange(iotest.ErrReader(full)); !errors.Is(err, full) {
		t.Errorf("a reader that breaks gives %v", err)
	}
}

// limited takes some bytes and then no more.
type limited struct {
	left int
	err  error
}

func (l *limited) Write(p []byte) (int, error) {
	if l.left -= len(p); l.left < 0 {
		return 0, l.err
	}
	return len(p), nil
}

// FuzzTransfer holds: what is read is written to something that reads as the same.
func FuzzTransfer(f *testing.F) {
	x := streamed(`{"a":1}`, "b", "cc")
	f.Add(sent(f, x, &exchange.Summary{ID: x.ID}))
	f.Fuzz(func(t *testing.T, b []byte) {
		x, row, err := ReadExchange(bytes.NewReader(b))
		if err != nil {
			return
		}
		again, rowAgain, err := ReadExchange(bytes.NewReader(sent(t, x, &row)))
		if err != nil {
			t.Fatal(err)
		}
		if d := same(x, again) + cmp.Diff(row, rowAgain); d != "" {
			t.Error(d)
		}
	})
}
