package launch

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/benchproxy/benchproxy/engines"
)

// Build is an installed build of an engine's program.
type Build struct {
	Path    string  `json:"path"`
	Tag     string  `json:"tag,omitempty"` // of the directories above it: what it prints of itself may be a constant
	Version string  `json:"version,omitempty"`
	Device  *string `json:"device"` // strongest device that it lists; nil: it lists none, or cannot list
	Devices string  `json:"devices,omitempty"`
	Error   string  `json:"error,omitempty"` // why it could not be asked
}

// Bounds of a search for builds.
const (
	searchDepth = 8
	askTime     = 30 * time.Second
)

// Builds finds the builds of an engine's program: in PATH, and below roots, which may also be the programs themselves. Each
// is asked for its version and its devices, with the given environment.
func Builds(ctx context.Context, p engines.Profile, roots, environ []string) ([]Build, error) {
	if p.Launch == nil {
		return nil, usage("%s is not launched: there are no builds of it", p.Name)
	}
	var paths []string
	if path, err := exec.LookPath(p.Launch.Program); err == nil {
		paths = append(paths, path)
	}
	for _, root := range roots {
		found, err := programsBelow(ctx, root, p.Launch.Program)
		if err != nil {
			return nil, err
		}
		paths = append(paths, found...)
	}
	var out []Build
	seen := map[string]bool{}
	for _, path := range paths {
		real, err := filepath.EvalSymlinks(path)
		if err != nil || seen[real] {
			continue
		}
		seen[real] = true
		out = append(out, askBuild(ctx, p.Launch, path, environ))
	}
	return out, ctx.Err()
}

// programsBelow are the files of a name below a directory, as deep as builds lie. A root that is a file is the program.
func programsBelow(ctx context.Context, root, name string) ([]string, error) {
	info, err := os.Stat(root)
	if err != nil {
		return nil, usage("%s: there is no such file or directory", root)
	}
	if !info.IsDir() {
		return []string{root}, nil
	}
	var out []string
	base := strings.Count(filepath.Clean(root), string(filepath.Separator))
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return nil // a directory that cannot be read holds nothing for us
		case d.IsDir() && strings.Count(path, string(filepath.Separator))-base > searchDepth:
			return filepath.SkipDir
		case !d.IsDir() && strings.TrimSuffix(d.Name(), ".exe") == name:
			if f, err := d.Info(); err == nil && (f.Mode()&0o111 != 0 || filepath.Ext(path) == ".exe" || f.Mode()&fs.ModeSymlink != 0) {
				out = append(out, path)
			}
		}
		return nil
	})
	return out, err
}

// tagLike matches a directory that is named by a build: b1234, v1.2, 0.9.1.
var tagLike = regexp.MustCompile(`(^|[-_])(b[0-9]{3,}|v?[0-9]+\.[0-9]+)`)

// tagOf is the nearest directory above a program that is named by a build, else by what it was built for.
func tagOf(path string) string {
	plain := []string{"bin", "Release", "build", "Debug", ".", string(filepath.Separator)}
	first := ""
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		name := filepath.Base(dir)
		if tagLike.MatchString(name) {
			return name
		}
		if first == "" && !slices.Contains(plain, name) {
			first = name
		}
		if dir == filepath.Dir(dir) {
			return first
		}
	}
}

// askBuild runs a program for its version and its devices.
func askBuild(ctx context.Context, l *engines.Launch, path string, environ []string) Build {
	b := Build{Path: path, Tag: tagOf(path)}
	if len(l.Version) > 0 {
		out, err := tool{path: path, args: l.Version, env: environ, time: askTime}.run(ctx)
		if err != nil {
			b.Error = err.Error()
			return b
		}
		b.Version = versionLine(out)
	}
	if l.Devices == nil || len(l.Devices.List) == 0 {
		return b
	}
	out, err := tool{path: path, args: l.Devices.List, env: environ, time: askTime}.run(ctx)
	if err != nil {
		return b // an older build cannot list
	}
	d := newDeviceScan(l)
	for line := range strings.Lines(out) {
		d.look(strings.TrimRight(line, "\r\n"), true)
	}
	b.Device, b.Devices = d.seen()
	return b
}

// versionLine is the line that names a version, else the first.
func versionLine(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for _, l := range lines {
		if strings.Contains(strings.ToLower(l), "version") {
			return strings.TrimSpace(l)
		}
	}
	return strings.TrimSpace(lines[0])
}
