package launch

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/benchproxy/benchproxy/engines"
)

// spec puts the parts together.
func (b *builder) spec() Spec {
	o := b.o
	for name, value := range b.backend.Env {
		b.env[name] = strings.ReplaceAll(value, "{tp}", strconv.Itoa(max(o.TP, 1)))
	}
	visible := o.Devices
	if o.TP > 0 && len(visible) > o.TP {
		visible = visible[:o.TP]
	}
	if b.backend.Visible != "" && len(visible) > 0 {
		b.env[b.backend.Visible] = strings.Join(visible, ",")
	}
	maps.Copy(b.env, o.Env)
	argEnv := slices.DeleteFunc(b.argEnv, func(name string) bool { _, own := o.Env[name]; return own })
	var env []string
	for _, name := range slices.Sorted(maps.Keys(b.env)) {
		env = append(env, name+"="+b.env[name])
	}
	dir := o.Dir
	if file := b.values["file"]; dir == "" && file != "" && filepath.IsAbs(file) {
		dir = filepath.Dir(file)
	}
	return Spec{
		Engine: b.profile, Backend: b.backend, Program: cmp.Or(o.Program, b.launch.Program), File: b.values["file"], Scripts: b.scripts(), Args: b.args,
		Env: env, ArgEnv: argEnv, Dir: dir,
		Files: b.files, Model: o.Model, Host: cmp.Or(o.Host, DefaultHost), Port: cmp.Or(o.Port, b.launch.Port), Busy: b.launch.Busy,
		Devices: visible, Asked: b.device(), Times: Times{Ready: ReadyTime(o.Class)},
	}
}

// scripts are the files that a user's own command names, but for the model's: what it runs.
func (b *builder) scripts() []string {
	var out []string
	for _, word := range b.o.Command[min(1, len(b.o.Command)):] {
		if _, isFlag := flagName(word); isFlag || strings.Contains(word, "${") || slices.Contains([]string{b.o.Model, b.o.Drafter, b.o.MMProj}, word) {
			continue
		}
		if info, err := os.Stat(word); err == nil && info.Mode().IsRegular() && info.Size() <= longestScript {
			out = append(out, word)
		}
	}
	return out
}

// longestScript is the size above which a file is data, not a program.
const longestScript = 64 << 20

// device is what was asked for, in the words of evidence.
func (b *builder) device() string {
	switch {
	case b.backend.Kind == engines.KindCPU:
		return engines.KindCPU
	case b.o.Device != "" && b.o.Device != "auto":
		return b.o.Device
	case len(b.backend.Devices) > 0:
		return b.backend.Devices[0]
	}
	return b.backend.Kind
}
