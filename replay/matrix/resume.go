package matrix

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Earlier is what a plan has to know of a result that is there.
type Earlier struct {
	Status     Status            `json:"status"`
	Definition string            `json:"definition"` // "" for one that another tool wrote
	Launch     string            `json:"launch"`
	Build      string            `json:"build"`
	ModelFiles string            `json:"model_files"`
	Identity   exchange.Identity `json:"identity"`
}

// Server is what a group would be measured on now. What is not known is "".
type Server struct {
	Launch     string             // see Record, as the next two
	Build      string             //
	ModelFiles string             //
	Why        string             // Launch is not known
	Identity   *exchange.Identity // of one that runs already; nil where it does not answer
}

// Resume says which cells of a plan are measured when there are results of some.
type Resume struct {
	SkipExisting bool // not those whose result is ok and of the same definition
	OnlyFailed   bool // only those whose result is fail
}

// resume leaves cells out. What is skipped anyway stays so, but for a result that would be lost by it. A result that is ok
// is measured again where it was made by another build, in another environment or of other weights than the server has
// now: both would stand in one table as the same engine.
func (p *Plan) resume(r Resume, results map[string]Earlier, server func(*Group) *Server) {
	for i := range p.Groups {
		g := &p.Groups[i]
		var now *Server
		asked := server == nil || !r.SkipExisting && !r.OnlyFailed
		for j := range g.Cells {
			c := &g.Cells[j]
			was, there := results[c.Name]
			if was.of(c) && c.Do == DoRun && !asked {
				now, asked = server(g), true
			}
			if was.of(c) && c.Do == DoRun && now != nil {
				if c.Reason = was.changed(g.Launch.Transport, now); c.Reason != "" {
					continue
				}
			}
			r.settle(c, was, there)
		}
	}
}

// of reports whether it is an ok result of a cell.
func (e *Earlier) of(c *Cell) bool { return e.Status == StatusOK && e.Definition == c.Definition }

// settle says what becomes of a cell by the result that there is of it.
func (r Resume) settle(c *Cell, was Earlier, there bool) {
	switch ok := was.of(c); {
	case r.SkipExisting && ok:
		c.leave(DoKeep, "its result is ok and of the same definition")
	case r.OnlyFailed && !there:
		c.leave(DoLeave, "it has no result, and only failed cells are asked for")
	case r.OnlyFailed && was.Status != StatusFail:
		c.leave(DoLeave, "its result is "+string(was.Status)+", and only failed cells are asked for")
	case r.SkipExisting && c.Do == DoRun && was.Status == StatusOK:
		c.Reason = "its result is of other settings"
	}
}

// changed is why a result does not stand for what the server of its group is now, or "". A server that cannot be looked at
// could not be measured either: its results stay.
func (e *Earlier) changed(transport string, now *Server) string {
	switch {
	case now == nil:
		return ""
	case e.ModelFiles != "" && now.ModelFiles != "" && e.ModelFiles != now.ModelFiles:
		return "the model files were changed since its result"
	case transport != TransportServer:
		return e.otherVersion(now.Identity)
	case now.Launch == "":
		return "which build the engine is cannot be told: " + now.Why
	case e.Launch == "":
		return "its result does not say which build of the engine made it"
	case e.Launch == now.Launch:
		return ""
	case e.Build == now.Build:
		return "variables that change what the engine does are others than those of its result"
	}
	return "the engine was built anew since its result"
}

// otherVersion compares what an engine says of itself. One that says nothing is taken for the same.
func (e *Earlier) otherVersion(now *exchange.Identity) string {
	if now == nil || now.Version == "" || e.Identity.Version == "" || now.Version == e.Identity.Version {
		return ""
	}
	return fmt.Sprintf("the engine is version %s, and was %s when its result was made", now.Version, e.Identity.Version)
}

func (c *Cell) leave(do Do, why string) { c.Do, c.Skip, c.Reason = do, nil, why }

// ReadResults reads what a directory holds of results, by the names of their cells. A file that cannot be read as one is
// no result: it is told and passed over, so that a broken file costs one cell and not the run. A directory that is not
// there holds none.
func ReadResults(dir string) (results map[string]Earlier, broken []string, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read results: %w", err)
	}
	results = map[string]Earlier{}
	for _, e := range entries {
		name, isJSON := strings.CutSuffix(e.Name(), ".json")
		if e.IsDir() || !isJSON {
			continue
		}
		raw, err := readRegular(filepath.Join(dir, e.Name()))
		var was Earlier
		if err == nil {
			err = json.Unmarshal(raw, &was)
		}
		switch {
		case err != nil:
			broken = append(broken, fmt.Sprintf("%s: %v", e.Name(), err))
		case was.Status == "":
			broken = append(broken, e.Name()+": it has no status")
		default:
			results[name] = was
		}
	}
	return results, broken, nil
}

// readRegular reads a file, or what a link leads to; a pipe or a device, which might never end, is an error.
func readRegular(path string) ([]byte, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, errors.New("it is no regular file")
	}
	return os.ReadFile(filepath.Clean(path))
}

// WriteRecord writes the result file of a record, whole or not at all.
func WriteRecord(dir string, r *Record) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(r); err != nil {
		return fmt.Errorf("write record %s: %w", r.Cell, err)
	}
	return writeWhole(filepath.Join(dir, r.Cell+".json"), b.Bytes())
}

// writeWhole puts a file in place by renaming it, after its bytes are on the disk.
func writeWhole(path string, content []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("write %s: %w", path, errors.Join(err, os.Remove(f.Name())))
		}
	}()
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err = os.Chmod(f.Name(), 0o644); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// ReadRecord reads one result file.
func ReadRecord(path string) (Record, error) {
	var r Record
	raw, err := os.ReadFile(filepath.Clean(path))
	if err == nil {
		err = json.Unmarshal(raw, &r)
	}
	if err != nil {
		return r, fmt.Errorf("read record %s: %w", path, err)
	}
	return r, nil
}
