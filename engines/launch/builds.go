package launch

import (
	"context"
	"fmt"
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
	Path    string   `json:"path"`           // absolute
	Also    []string `json:"also,omitempty"` // other places that have the very same build
	Tag     string   `json:"tag,omitempty"`  // of the directories above it: what it prints of itself may be a constant
	Version string   `json:"version,omitempty"`
	Digest  string   `json:"build,omitempty"` // sha256:<hex> of its files, "" when they cannot be read
	Device  *string  `json:"device"`          // strongest device that it lists; nil: it lists none, or cannot list
	Devices string   `json:"devices,omitempty"`
	Error   string   `json:"error,omitempty"` // why it could not be asked
}

// Bounds of a search for builds.
const (
	searchDepth = 8
	askTime     = 30 * time.Second
)

// Search says where builds are looked for, and how they are asked.
type Search struct {
	Engine   engines.Profile
	Roots    []string          // directories, or the programs themselves
	Environ  []string          // of the programs; nil: ours
	StateDir string            // where digests are kept, "" for nowhere
	Asking   func(path string) // told before each build is asked; nil: nobody is
}

// Builds finds the builds of an engine's program: in PATH, and below the roots. Each is asked for its version and its
// devices. What several places have is one build.
func Builds(ctx context.Context, s Search) ([]Build, error) {
	l := s.Engine.Launch
	if l == nil {
		return nil, usage("%s is not launched: there are no builds of it", s.Engine.Name)
	}
	paths, err := s.programs(ctx)
	if err != nil {
		return nil, err
	}
	var out []Build
	var seen []os.FileInfo
	for _, path := range paths {
		info, err := os.Stat(path)
		same := func(other os.FileInfo) bool { return os.SameFile(info, other) }
		if err != nil || !info.Mode().IsRegular() || slices.ContainsFunc(seen, same) {
			continue
		}
		seen = append(seen, info)
		b := Build{Path: path, Tag: tagOf(path)}
		if id, err := IdentityOf(ctx, Spec{Engine: s.Engine, Program: path, Environ: s.Environ, StateDir: s.StateDir}); err == nil {
			b.Digest = id.Build
		}
		twin := slices.IndexFunc(out, func(other Build) bool { return b.Digest != "" && other.Digest == b.Digest })
		if twin >= 0 {
			out[twin].join(b)
			continue
		}
		if s.Asking != nil {
			s.Asking(path)
		}
		b.ask(ctx, l, s.Environ)
		out = append(out, b)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	return out, nil
}

// join adds another place of the same build. The one whose directories name the build is cited.
func (b *Build) join(twin Build) {
	if tagLike.MatchString(twin.Tag) && !tagLike.MatchString(b.Tag) {
		b.Path, twin.Path, b.Tag = twin.Path, b.Path, twin.Tag
	}
	b.Also = append(b.Also, twin.Path)
}

// programs are the paths of what may be builds.
func (s *Search) programs(ctx context.Context) ([]string, error) {
	var out []string
	if path, err := exec.LookPath(s.Engine.Launch.Program); err == nil {
		out = append(out, path)
	}
	for _, root := range s.Roots {
		found, err := programsBelow(ctx, root, s.Engine.Launch.Program)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	for i, path := range out {
		abs, err := filepath.Abs(path)
		if err != nil {
			return nil, fmt.Errorf("find builds: %w", err)
		}
		out[i] = abs
	}
	return out, nil
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
	if root, err = filepath.EvalSymlinks(root); err != nil { // a walk does not go through a link
		return nil, fmt.Errorf("find builds: %w", err)
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

// tagOf is the nearest directory above a program that is named by a build, or above what it is a link to, else by what it
// was built for.
func tagOf(path string) string {
	tag, tagged := tagAbove(path)
	if real, err := filepath.EvalSymlinks(path); err == nil && !tagged {
		if t, is := tagAbove(real); is {
			return t
		}
	}
	return tag
}

func tagAbove(path string) (tag string, tagged bool) {
	plain := []string{"bin", "Release", "build", "Debug", ".", string(filepath.Separator)}
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		name := filepath.Base(dir)
		if tagLike.MatchString(name) {
			return name, true
		}
		if tag == "" && !slices.Contains(plain, name) {
			tag = name
		}
		if dir == filepath.Dir(dir) {
			return tag, false
		}
	}
}

// ask runs a program for its version and its devices.
func (b *Build) ask(ctx context.Context, l *engines.Launch, environ []string) {
	if len(l.Version) > 0 {
		out, err := tool{path: b.Path, args: l.Version, env: environ, time: askTime}.run(ctx)
		if err != nil {
			b.Error = strings.Join(l.Version, " ") + ": " + err.Error()
			return
		}
		b.Version = versionLine(out)
	}
	if l.Devices == nil || len(l.Devices.List) == 0 {
		return
	}
	out, err := tool{path: b.Path, args: l.Devices.List, env: environ, time: askTime}.run(ctx)
	if err != nil {
		return // an older build cannot list
	}
	d := newDeviceScan(l)
	for line := range strings.Lines(out) {
		d.look(strings.TrimRight(line, "\r\n"), true)
	}
	b.Device, b.Devices = d.seen()
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
