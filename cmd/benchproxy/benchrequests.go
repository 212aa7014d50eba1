package main

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/engines/launch"
	"github.com/benchproxy/benchproxy/internal/wire"
	"github.com/benchproxy/benchproxy/replay"
	"github.com/benchproxy/benchproxy/replay/matrix"
)

// changes are what every request carries beside what its scenario says. An engine that we start is told at its start to
// leave prompts as they are; one that runs already is told so in each request, which its exchanges say. Where that cannot
// be said the run goes on with a warning.
func (s *benchServer) changes() replay.Changes {
	ch := s.s.plan.Changes
	bare := s.profile(0).Requests.Bare
	if s.process != nil || len(bare) == 0 {
		return ch
	}
	var fields map[string]json.RawMessage
	if s.dialect() != wire.DialectChat || json.Unmarshal(bare, &fields) != nil {
		note(s.b.Stderr, "warning: %s may add tools of its own to prompts, and cannot be told not to in the API it is asked in", s.group.Engine)
		return ch
	}
	edits := slices.Clone(ch.Edits)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		e, err := replay.ParseSet(name + "=" + string(fields[name]))
		if err != nil {
			note(s.b.Stderr, "warning: %s is not told %s: %v", s.group.Engine, name, err)
			continue
		}
		edits = append(edits, e)
	}
	ch.Edits = edits
	return ch
}

// engineVariables are how the names of variables begin that change what engines and the libraries under them do.
var engineVariables = []string{
	"CUDA_", "NVIDIA_", "HIP_", "ROCR_", "HSA_", "GGML_", "LLAMA_", "OLLAMA_", "VLLM_", "SGLANG_", "SGL_", "TS_", "TENSORSHARP_", "LOOM_",
	"NCCL_", "RCCL_", "TORCH_", "PYTORCH_", "TRITON_", "OMP_", "MKL_", "OPENBLAS_", "KMP_",
}

// labelLaunch keeps with a run what its engine was started with: the command line with what was set for it, and what it
// inherits that changes its results. Secrets are masked.
func labelLaunch(labels map[string]string, proc *launch.Process, environ []string) {
	labels["launch"] = proc.Command()
	if text := inherited(environ); text != "" {
		labels["environment"] = text
	}
}

// inherited are the variables of an environment that change what an engine does, in order of their names.
func inherited(environ []string) string {
	found := map[string]string{}
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		if slices.ContainsFunc(engineVariables, func(p string) bool { return strings.HasPrefix(name, p) }) {
			found[name] = value
		}
	}
	found = matrix.MaskedNames(found)
	var words []string
	for _, name := range slices.Sorted(maps.Keys(found)) {
		words = append(words, name+"="+found[name])
	}
	return strings.Join(words, " ")
}
