package tables

import (
	"bufio"
	"bytes"
	"database/sql"
	"encoding/json"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	_ "github.com/duckdb/duckdb-go/v2" // registers the driver "duckdb"
)

// workload asks two models, in streams and whole: a whole answer has no ttft, which is null and not 0.
const workload = `{"method":"POST","path":"/v1/chat/completions","body":{"model":"small","stream":true,"messages":[{"role":"user","content":"one"}]}}
{"method":"POST","path":"/v1/chat/completions","body":{"model":"small","messages":[{"role":"user","content":"two"}]}}
{"method":"POST","path":"/v1/chat/completions","body":{"model":"large","stream":true,"messages":[{"role":"user","content":"three"}]}}
{"method":"POST","path":"/v1/chat/completions","body":{"model":"large","stream":true,"messages":[{"role":"user","content":"four"}]}}
`

// sim starts the scripted engine and gives its URL.
func sim(t *testing.T, bin string) string {
	t.Helper()
	cmd := exec.Command(bin, "sim", "--listen", "127.0.0.1:0", "--set", "ttft=5ms; decode=400; jitter=0.5; answer=12")
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // nothing is kept of it
		_ = cmd.Wait()
	})
	address := regexp.MustCompile(`http://127\.0\.0\.1:\d+`)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if at := address.FindString(lines.Text()); at != "" {
			go func() { _, _ = io.Copy(io.Discard, out) }() // ends with the process
			return at
		}
	}
	t.Fatal("the scripted engine named no address")
	return ""
}

// listed is a row of `store ls --json`, as far as it is compared.
type listed struct {
	ID, Model, Path, Outcome string
	Stream                   bool
	Metrics                  map[string]*float64
}

// list gives the rows that the store lists for a run.
func list(t *testing.T, bin, store, run string) (rows []listed) {
	t.Helper()
	for _, line := range bytes.Split(bytes.TrimSpace(benchproxy(t, bin, store, "store", "ls", run, "--json")), []byte("\n")) {
		var row listed
		if err := json.Unmarshal(line, &row); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	return rows
}

// exported exports a run as tables and gives their directory and what the export says of them.
func exported(t *testing.T, bin, store, run string) (dir string, exchanges, events int64) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "tables")
	var report struct{ Items, Events int64 }
	if err := json.Unmarshal(benchproxy(t, bin, store, "store", "export", run, "--format", "parquet", "--out", dir, "--json"), &report); err != nil {
		t.Fatal(err)
	}
	return dir, report.Items, report.Events
}

// duck is a DuckDB in memory with the tables as views.
func duck(t *testing.T, dir string) *sql.DB {
	t.Helper()
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	db.SetMaxOpenConns(1) // each connection would be a database of its own
	for _, name := range []string{"exchanges", "events"} {
		if _, err := db.Exec("CREATE VIEW " + name + " AS SELECT * FROM read_parquet('" + filepath.Join(dir, name+".parquet") + "')"); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

// query gives the rows of an answer as numbers behind a text.
func query(t *testing.T, db *sql.DB, text string) map[string][]float64 {
	t.Helper()
	rows, err := db.Query(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	defer func() { _ = rows.Close() }() // only read
	cols, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]float64{}
	for rows.Next() {
		var name string
		values := make([]float64, len(cols)-1)
		into := []any{&name}
		for i := range values {
			into = append(into, &values[i])
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		out[name] = values
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// median is the middle of some values, or the mean of the two.
func median(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// byModel are the figures of rows, by model and metric.
func byModel(rows []listed) map[string]map[string][]float64 {
	groups := map[string]map[string][]float64{}
	for _, row := range rows {
		if groups[row.Model] == nil {
			groups[row.Model] = map[string][]float64{}
		}
		for _, metric := range []string{"ttft_ms", "decode_tps", "completion_tokens"} {
			if v := row.Metrics[metric]; v != nil {
				groups[row.Model][metric] = append(groups[row.Model][metric], *v)
			}
		}
	}
	return groups
}

// TestDuckDBAgrees holds that DuckDB reads the tables, counts the same rows, and comes to the same medians per model as
// the rows of the store.
func TestDuckDBAgrees(t *testing.T) {
	bin, store := build(t), t.TempDir()
	plan := filepath.Join(t.TempDir(), "plan.jsonl")
	if err := os.WriteFile(plan, []byte(workload), 0o600); err != nil {
		t.Fatal(err)
	}
	benchproxy(t, bin, store, "replay", plan, "--target", sim(t, bin), "--run", "two", "--repeats", "7", "--concurrency", "4")
	dir, exchanges, events := exported(t, bin, store, "two")
	rows, db := list(t, bin, store, "two"), duck(t, dir)
	if int64(len(rows)) != exchanges || exchanges != 28 || events == 0 {
		t.Fatalf("%d rows, %d exchanges, %d events", len(rows), exchanges, events)
	}
	for table, want := range map[string]int64{"exchanges": exchanges, "events": events} {
		if got := query(t, db, "SELECT 'n', count(*) FROM "+table)["n"]; int64(got[0]) != want {
			t.Errorf("%s: DuckDB counts %v, the export says %d", table, got, want)
		}
	}
	if got := query(t, db, "SELECT 'n', count(DISTINCT id) FROM exchanges WHERE id IN (SELECT exchange FROM events)")["n"]; got[0] == 0 {
		t.Error("events do not join with their exchanges")
	}
	groups := byModel(rows)
	got := query(t, db, `SELECT model, count(*), count(ttft_ms), median(ttft_ms), median(decode_tps), sum(completion_tokens)::DOUBLE
		FROM exchanges GROUP BY model ORDER BY model`)
	if len(got) != len(groups) || len(got) != 2 {
		t.Errorf("DuckDB has %d models, the store %d", len(got), len(groups))
	}
	for model, values := range groups {
		sum := 0.0
		for _, v := range values["completion_tokens"] {
			sum += v
		}
		want := []float64{0, float64(len(values["ttft_ms"])), median(values["ttft_ms"]), median(values["decode_tps"]), sum}
		for _, row := range rows {
			if row.Model == model {
				want[0]++
			}
		}
		if len(got[model]) != len(want) {
			t.Errorf("model %q: DuckDB gives %v", model, got[model])
			continue
		}
		for i := range want {
			if math.Abs(got[model][i]-want[i]) > 1e-9*math.Abs(want[i]) {
				t.Errorf("model %q, column %d: DuckDB gives %v, the store %v", model, i, got[model][i], want[i])
			}
		}
		t.Logf("model %q: %.0f exchanges, median ttft %.3f ms, median decode %.1f tok/s, %.0f tokens", model, want[0], want[2], want[3], want[4])
	}
}
