package main

import (
	"strings"
	"testing"
)

func TestInheritedVariables(t *testing.T) {
	got := inherited([]string{"PATH=/bin", "OLLAMA_FLASH_ATTENTION=1", "CUDA_VISIBLE_DEVICES=0,1", "LLAMA_API_KEY=abc", "XCUDA_=1", "OMP_NUM_THREADS"})
	if !strings.HasPrefix(got, "CUDA_VISIBLE_DEVICES=0,1 LLAMA_API_KEY=") || !strings.HasSuffix(got, " OLLAMA_FLASH_ATTENTION=1 OMP_NUM_THREADS=") {
		t.Errorf("inherited %q", got)
	}
	if strings.Contains(got, "abc") {
		t.Errorf("a key is told: %q", got)
	}
	if got := inherited([]string{"HOME=/"}); got != "" {
		t.Errorf("inherited %q", got)
	}
}
