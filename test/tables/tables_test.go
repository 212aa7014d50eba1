package tables

import (
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// benchproxy runs the program with a store and gives what it prints.
func benchproxy(t *testing.T, bin, store string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(bin, args...)
	cmd.Env = append(cmd.Environ(), "BENCHPROXY_STORE="+store)
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, errOut.String())
	}
	return out
}

func build(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "benchproxy")
	cmd := exec.Command("go", "build", "-o", bin, "./cmd/benchproxy")
	cmd.Dir = filepath.Join("..", "..")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return bin
}

// table reads a whole table.
func table(t *testing.T, name string) arrow.Table {
	t.Helper()
	r, err := file.OpenParquetFile(name, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	fr, err := pqarrow.NewFileReader(r, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	tab, err := fr.ReadTable(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tab.Release)
	return tab
}

// column gives the values of a column as the reader prints them; null is "(null)".
func column(t *testing.T, tab arrow.Table, name string) (values []string) {
	t.Helper()
	at := tab.Schema().FieldIndices(name)
	if len(at) != 1 {
		t.Fatalf("%d columns %s", len(at), name)
	}
	for _, chunk := range tab.Column(at[0]).Data().Chunks() {
		for i := range chunk.Len() {
			values = append(values, chunk.ValueStr(i))
		}
	}
	return values
}

func TestAnotherReaderAgrees(t *testing.T) {
	bin, store, out := build(t), t.TempDir(), filepath.Join(t.TempDir(), "tables")
	benchproxy(t, bin, store, "demo")
	var report struct{ Items, Events int64 }
	if err := json.Unmarshal(benchproxy(t, bin, store, "store", "export", "demo", "--format", "parquet", "--out", out, "--json"), &report); err != nil {
		t.Fatal(err)
	}
	exchanges, events := table(t, filepath.Join(out, "exchanges.parquet")), table(t, filepath.Join(out, "events.parquet"))
	if exchanges.NumRows() == 0 || exchanges.NumRows() != report.Items || events.NumRows() == 0 || events.NumRows() != report.Events {
		t.Fatalf("%d exchanges and %d events, the export says %+v", exchanges.NumRows(), events.NumRows(), report)
	}
	ids, outcomes := column(t, exchanges, "id"), column(t, exchanges, "outcome")
	counts, ttfts := column(t, exchanges, "completion_tokens"), exchanges.Column(exchanges.Schema().FieldIndices("ttft_ms")[0]).Data()
	n := 0
	for _, line := range bytes.Split(bytes.TrimSpace(benchproxy(t, bin, store, "store", "ls", "demo", "--json")), []byte("\n")) {
		var row struct {
			ID, Outcome string
			Metrics     map[string]*float64
		}
		if err := json.Unmarshal(line, &row); err != nil {
			t.Fatal(err)
		}
		if ids[n] != row.ID || outcomes[n] != row.Outcome {
			t.Errorf("row %d is %s, %s; the store has %s, %s", n, ids[n], outcomes[n], row.ID, row.Outcome)
		}
		if got, want := number(ttfts, n), row.Metrics["ttft_ms"]; (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("row %d: ttft_ms %v, the store has %v", n, got, want)
		}
		if (counts[n] == "(null)") != (row.Metrics["completion_tokens"] == nil) {
			t.Errorf("row %d: completion_tokens %s, the store has %v", n, counts[n], row.Metrics["completion_tokens"])
		}
		n++
	}
	if int64(n) != report.Items {
		t.Errorf("the store lists %d exchanges, the table has %d", n, report.Items)
	}
}

// number is the value of a row of a column of numbers; nil for null.
func number(c *arrow.Chunked, row int) *float64 {
	for _, chunk := range c.Chunks() {
		if row < chunk.Len() {
			if chunk.IsNull(row) {
				return nil
			}
			v := chunk.(*array.Float64).Value(row)
			return &v
		}
		row -= chunk.Len()
	}
	return nil
}
