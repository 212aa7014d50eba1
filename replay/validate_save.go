package replay

import (
	"fmt"
	"os"
	"path/filepath"
)

// Save writes the report whole or not at all, replacing what an earlier Save wrote.
func (v *Validation) Save(path string) error {
	b, err := appendJSON(nil, &v.Report)
	if err == nil {
		err = ReplaceFile(path, append(b, '\n'))
	}
	if err != nil {
		return fmt.Errorf("save report %s: %w", filepath.Base(path), err)
	}
	return nil
}

// ReplaceFile writes a file whole or not at all, in the place of an earlier one.
func ReplaceFile(path string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".benchproxy-report-*")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // it is of no use
	}
	return err
}
