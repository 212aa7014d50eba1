package exchange

import "time"

// Machine is the state of the machine that a run was measured on, read when the run began. What could not be read is null,
// and Absent says why.
type Machine struct {
	Schema int       `json:"schema"` // 1
	Taken  time.Time `json:"taken"`
	Host   Host      `json:"host"`

	PhysicalCores   *int      `json:"physical_cores"`
	MemoryBytes     *int64    `json:"memory_bytes"`
	MemoryAvailable *int64    `json:"memory_available_bytes"` // for new programs, without swapping
	SwapUsed        *int64    `json:"swap_used_bytes"`
	CPUBusy         *float64  `json:"cpu_busy"`  // part of all cores' time that was used while it was looked at, 0 to 1
	GPUs            []GPU     `json:"gpus"`      // null when nobody could tell; empty when a tool says that there are none
	GPUUsers        []GPUUser `json:"gpu_users"` // other programs on GPUs; null when nobody could tell
	Engines         []Process `json:"engines"`   // other inference engines that run; null when nobody could tell

	Busy   []string          `json:"busy"`             // why a measurement is disturbed; empty when it is not
	Forced bool              `json:"forced,omitempty"` // it was begun all the same
	Absent map[string]string `json:"absent"`           // name of a field that is null -> why
}

// GPU is one graphics processor, as its vendor's tool tells.
type GPU struct {
	Index        int      `json:"index"`
	Name         string   `json:"name"`
	UUID         string   `json:"uuid,omitempty"`
	Driver       *string  `json:"driver"`
	MemoryBytes  *int64   `json:"memory_bytes"`
	MemoryUsed   *int64   `json:"memory_used_bytes"`
	Use          *float64 `json:"use"`           // part of the time that it worked, 0 to 1
	PowerLimitW  *float64 `json:"power_limit_w"` // watts
	Celsius      *float64 `json:"celsius"`
	Architecture string   `json:"architecture,omitempty"` // gfx1151 ...
	Source       string   `json:"source"`                 // nvidia-smi or rocm-smi
}

// GPUUser is a program that uses a GPU.
type GPUUser struct {
	Process
	GPU         string `json:"gpu,omitempty"` // UUID; "" when the tool does not tell which
	MemoryBytes *int64 `json:"memory_bytes"`  // of the GPU
}

// Process is a program that runs.
type Process struct {
	PID      int      `json:"pid"`
	Name     string   `json:"name"`
	Engine   string   `json:"engine,omitempty"`  // which one it looks like
	Command  []string `json:"command,omitempty"` // credentials masked
	Resident *int64   `json:"resident_bytes"`    // memory that it holds; null when it cannot be read
}
