package launch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/redact"
)

// Daemon is an engine that started itself, as its file says.
type Daemon struct {
	URL     string   // without a final slash
	PID     int      // 0 when the file does not say
	File    string   // that says so
	Environ []string // of its command line program, which loads and unloads models; nil: none
}

// FindDaemon reads where the daemon of an engine listens. home is the directory of the user. The error wraps
// exchange.ErrUnreachable where there is none, or none any more.
func FindDaemon(home string, p engines.Profile) (*Daemon, error) {
	if p.Daemon == nil {
		return nil, usage("%s has no daemon that says where it listens: name its URL", p.Name)
	}
	d := &Daemon{File: filepath.Join(home, filepath.FromSlash(p.Daemon.File))}
	doc, err := readDaemonFile(d.File)
	if err == nil {
		err = d.read(doc, p.Daemon)
	}
	if err == nil {
		err = d.lives()
	}
	if err != nil {
		return nil, &exchange.Error{Op: "find daemon of " + p.ID, Object: d.File, Side: exchange.SideEngine,
			Cause: fmt.Errorf("%w: %w", exchange.ErrUnreachable, err), Hint: fmt.Sprintf("start it with %q, or name its URL", p.Daemon.Start)}
	}
	return d, nil
}

// longestDaemonFile bounds what is read: it holds a few lines.
const longestDaemonFile = 1 << 20

func readDaemonFile(path string) (map[string]any, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, errors.New("there is no such file: no daemon was started, or it has ended")
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > longestDaemonFile: // a pipe would never end
		return nil, errors.New("it is no file of a daemon")
	}
	raw, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return nil, err
	}
	var doc map[string]any
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, fmt.Errorf("read it as JSON: %w", err)
	}
	return doc, nil
}

// read takes the address and the process id of a document.
func (d *Daemon) read(doc map[string]any, keys *engines.Daemon) error {
	if n, ok := doc[keys.PID].(float64); ok && n == float64(int(n)) && n > 0 {
		d.PID = int(n)
	}
	address := addressIn(doc, keys)
	if address == "" {
		return fmt.Errorf("it has no address at %q", keys.Addresses)
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return fmt.Errorf("%q is no address of a daemon", redact.URL(address))
	}
	if ip := net.ParseIP(u.Hostname()); ip != nil && ip.IsUnspecified() { // it listens on all addresses of this machine
		u.Host = net.JoinHostPort(DefaultHost, portOf(u))
	}
	d.URL = u.Scheme + "://" + u.Host + strings.TrimRight(u.EscapedPath(), "/")
	return nil
}

// addressIn is the first address that a document has, of a list the first without TLS; "" for none.
func addressIn(doc map[string]any, keys *engines.Daemon) string {
	list, ok := doc[keys.Addresses].([]any)
	if !ok {
		list = []any{doc[keys.Addresses]}
	}
	first := ""
	for _, one := range list {
		if s, ok := one.(string); ok && strings.HasPrefix(s, "http://") {
			return s
		} else if ok && first == "" {
			first = s
		}
	}
	if n, ok := doc[keys.Port].(float64); ok && first == "" && n == float64(uint16(n)) && n > 0 {
		return "http://" + net.JoinHostPort(DefaultHost, strconv.Itoa(int(n)))
	}
	return first
}

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// lives holds the file against what runs: a daemon that was killed leaves its file, and its port to somebody else.
func (d *Daemon) lives() error {
	if d.PID == 0 {
		return nil
	}
	if p, ok := readProcess(d.PID); !ok || p.dead {
		return fmt.Errorf("its daemon, pid %d, has ended and left it behind", d.PID)
	}
	u, err := url.Parse(d.URL)
	if err != nil {
		return err
	}
	port, err := strconv.Atoi(portOf(u))
	if err != nil {
		return err
	}
	if o, known := portOwner(u.Hostname(), port); known && o.pid != 0 && o.pid != d.PID && !descends(o.pid, d.PID) {
		return fmt.Errorf("port %d belongs to %s, and not to the daemon, pid %d", port, o, d.PID)
	}
	return nil
}

// descends reports whether a process was started by another, or by one that was. A chain that is longer than any goes in
// a circle.
func descends(pid, from int) bool {
	for range 64 {
		p, ok := readProcess(pid)
		if !ok || p.parent <= 1 {
			return false
		}
		if pid = p.parent; pid == from {
			return true
		}
	}
	return false
}

// errNoTool says that the command line program of a daemon is not installed.
var errNoTool = errors.New("its command line program is not installed")

// tell has a daemon's command line program load or unload a model.
func (c *caller) tell(ctx context.Context, what string, command []string, model string) error {
	path, err := lookPath(command[0], c.daemon.Environ)
	if err != nil {
		return fmt.Errorf("%w: %s", errNoTool, command[0])
	}
	if model == "" || strings.HasPrefix(model, "-") { // it would be taken for a flag
		return c.failure(what+" model of", model, fmt.Errorf("%w: it is no name of a model", exchange.ErrUsage), "")
	}
	args := slices.Clone(command[1:])
	for i, a := range args {
		args[i] = strings.ReplaceAll(a, "$model", model)
	}
	if _, err := (tool{path: path, args: args, env: c.daemon.Environ, time: c.times.Load}).run(ctx); err != nil {
		return c.failure(what+" model of", model, fmt.Errorf("run %s: %w", strings.Join(command, " "), err), "")
	}
	return nil
}

// lookPath finds a program in the PATH of an environment.
func lookPath(name string, environ []string) (string, error) {
	if strings.ContainsRune(name, filepath.Separator) {
		return exec.LookPath(name)
	}
	for _, pair := range slices.Backward(environ) { // the last one counts
		list, ok := strings.CutPrefix(pair, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range filepath.SplitList(list) {
			if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil && filepath.IsAbs(dir) {
				return path, nil
			}
		}
		return "", exec.ErrNotFound
	}
	return exec.LookPath(name)
}
