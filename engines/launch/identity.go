package launch

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/redact"
)

// IdentityScheme begins the digests of identities. It changes when other things take part in them.
const IdentityScheme = "l1:"

// Identity says what exactly a Spec starts: the bytes of the build and the environment, so that a result of one build is
// not taken for that of the next at the same path. Arguments have no part in it, nor have variables that stand for them:
// whoever asks for them knows them. Nor has what other files a program reads at its own will.
type Identity struct {
	// Digest is that of Build and Environment, IdentityScheme and 16 hex digits. "" is an unknown one, which is the same as
	// no other.
	Digest      string            `json:"digest"`
	Build       string            `json:"build"`         // sha256:<hex> over Files; "" when one of them could not be read
	Why         string            `json:"why,omitempty"` // Build is ""
	Files       []BuildFile       `json:"files"`
	Environment map[string]string `json:"environment"` // what changes results, inherited or set; secrets masked
}

// BuildFile is a file of a build.
type BuildFile struct {
	Name   string `json:"name"` // without directories that tell the place of the build
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"` // sha256:<hex>
}

// IdentityOf is the identity of what a Spec would start at this moment. Digests of files are kept in its StateDir, with
// what tells a file that was changed, so that asking again costs no reading. The error wraps ErrMissing where there is no
// program; a build that cannot be read is no error.
func IdentityOf(ctx context.Context, s Spec) (Identity, error) {
	if err := findProgram(&s); err != nil {
		return Identity{}, err
	}
	id := Identity{Environment: s.resultEnvironment(), Files: []BuildFile{}}
	files, err := s.buildFiles()
	if err == nil {
		err = id.read(ctx, files, openDigests(s.StateDir))
	}
	if ctx.Err() != nil {
		return Identity{}, context.Cause(ctx)
	}
	if err != nil {
		id.Why = err.Error()
		return id, nil
	}
	id.Build = exchange.DigestPrefix + sumOf(id.Files)
	id.Digest = IdentityScheme + sumOf([]any{id.Build, id.Environment})[:16]
	return id, nil
}

// sumOf is the sha256 of a value's JSON, in hex. It is for values that are texts and numbers, in maps and lists.
func sumOf(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic("launch: an identity cannot be written: " + err.Error())
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// read digests the files.
func (id *Identity) read(ctx context.Context, files []buildPath, known *digests) error {
	for _, f := range files {
		d, size, err := known.of(ctx, f.path)
		if err != nil {
			return fmt.Errorf("read build: %w", err)
		}
		id.Files = append(id.Files, BuildFile{Name: f.name, Bytes: size, SHA256: exchange.DigestPrefix + d})
	}
	known.keep()
	return nil
}

// buildPath is a file of a build: its name in the identity, and where it is.
type buildPath struct{ name, path string }

// buildFiles are the program, what it runs, and what the profile says belongs to them, in order of their names. A file
// that several names lead to is one, under the first.
func (s *Spec) buildFiles() ([]buildPath, error) {
	list := []buildPath{{"program " + filepath.Base(s.Program), s.Program}}
	if s.File != "" {
		file := s.File
		if !filepath.IsAbs(file) {
			file = filepath.Join(s.Dir, file)
		}
		list = append(list, buildPath{"file " + filepath.Base(file), file})
	}
	for _, name := range s.Scripts {
		list = append(list, buildPath{"file " + filepath.Base(name), name})
	}
	if l := s.Engine.Launch; l != nil {
		for _, pattern := range l.Parts {
			parts, err := s.parts(pattern, list[1:])
			if err != nil {
				return nil, err
			}
			list = append(list, parts...)
		}
	}
	return distinctFiles(list)
}

// fileDir begins a pattern of parts that stand beside the file that the program runs.
const fileDir = "${file_dir}/"

// parts are the files of a pattern. A program that is a link is looked beside where the link is and beside what it leads
// to: the one is how virtual environments are made, the other how the newest build is named.
func (s *Spec) parts(pattern string, files []buildPath) ([]buildPath, error) {
	var dirs []string
	below, ofFile := strings.CutPrefix(pattern, fileDir)
	switch {
	case ofFile && len(files) > 0:
		dirs = []string{filepath.Dir(files[0].path)}
	case ofFile:
		return nil, nil
	default:
		dirs = []string{filepath.Dir(s.Program)}
		if real, err := filepath.EvalSymlinks(s.Program); err == nil && filepath.Dir(real) != dirs[0] {
			dirs = append(dirs, filepath.Dir(real))
		}
	}
	var out []buildPath
	for _, dir := range dirs {
		found, err := filepath.Glob(filepath.Join(escapeGlob(dir), filepath.FromSlash(below)))
		if err != nil {
			return nil, fmt.Errorf("read pattern of parts %q: %w", pattern, err)
		}
		for _, path := range found {
			name, err := filepath.Rel(dir, path)
			if err != nil {
				name = filepath.Base(path)
			}
			out = append(out, buildPath{filepath.ToSlash(name), path})
		}
	}
	return out, nil
}

// escapeGlob makes a directory stand for itself in a pattern. Windows has no way to, and no such names.
func escapeGlob(dir string) string {
	if filepath.Separator == '\\' {
		return dir
	}
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}

// distinctFiles leaves out directories and files that were there under another name, and sorts by name. The program has
// to be a file.
func distinctFiles(list []buildPath) ([]buildPath, error) {
	var out []buildPath
	var seen []os.FileInfo
	for i, f := range list {
		info, err := os.Stat(f.path)
		switch {
		case err != nil && i == 0:
			return nil, fmt.Errorf("read build: %w", err)
		case err != nil || !info.Mode().IsRegular() && i > 0: // a link that leads nowhere, a directory
			continue
		case !info.Mode().IsRegular():
			return nil, fmt.Errorf("read build: %s is no file", f.path)
		case slices.ContainsFunc(seen, func(other os.FileInfo) bool { return os.SameFile(info, other) }):
			continue
		}
		seen, out = append(seen, info), append(out, f)
	}
	slices.SortFunc(out, func(a, b buildPath) int {
		return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.path, b.path))
	})
	return out, nil
}

// resultVariables are how the names of variables begin that change what engines and the libraries under them do.
var resultVariables = []string{
	"CUDA_", "NVIDIA_", "HIP_", "ROCR_", "ROCM_", "HSA_", "AMD_", "GPU_", "VK_", "MTL_", "METAL_", "GGML_", "LLAMA_", "OLLAMA_", "VLLM_", "SGLANG_", "SGL_",
	"TS_", "TENSORSHARP_", "DOTNET_GC", "DOTNET_Tiered", "COMPlus_", "LOOM_", "PRISM_", "ORT_", "ONNX_", "LITELLM_", "TABBY_", "EXLLAMA_", "FOUNDRY_", "SIM_",
	"NCCL_", "RCCL_", "TORCH_", "TORCHINDUCTOR_", "PYTORCH_", "TRITON_", "FLASHINFER_", "XLA_", "OMP_", "GOMP_", "MKL_", "OPENBLAS_", "BLIS_", "KMP_",
	"LD_LIBRARY_PATH", "LD_PRELOAD", "DYLD_", "MALLOC_", "GOMAXPROCS", "GODEBUG",
}

// Inherited are the variables of an environment that change what an engine does, with secrets masked.
func Inherited(environ []string) map[string]string {
	out := map[string]string{}
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		if slices.ContainsFunc(resultVariables, func(p string) bool { return strings.HasPrefix(name, p) }) {
			out[name] = maskedValue(name, value)
		}
	}
	return out
}

func maskedValue(name, value string) string {
	if value != "" && redact.SecretHeader(name) {
		return redact.Mask
	}
	return redact.Text(value)
}

// resultEnvironment is what of the engine's environment changes its results: what it inherits of the kind, and what is set
// for it, but for what stands in the place of arguments.
func (s *Spec) resultEnvironment() map[string]string {
	out := Inherited(s.Environ)
	for _, pair := range s.Env {
		name, value, _ := strings.Cut(pair, "=")
		if slices.Contains(s.ArgEnv, name) {
			delete(out, name) // the inherited one is not seen
			continue
		}
		out[name] = maskedValue(name, value)
	}
	return out
}
