package clients

import "io/fs"

// walk calls f with every file below root.
func walk(root fs.FS, f func(name string, b []byte)) error {
	return fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		f(name, b)
		return nil
	})
}
