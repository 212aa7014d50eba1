// Package host looks at the machine: what it is, how busy it is, and who else uses it.
//
// Read tells what the machine is (host.go); Look adds memory, graphics processors (gpu.go), other engines and users of
// GPUs (process.go), and judges whether a measurement would be disturbed (busy.go).
//
// Invariants:
//
//   - What cannot be read is null, and the reason stands beside it. Nothing is guessed and nothing is 0 for want of a value.
//   - Tools of vendors are run only where they are installed, and never longer than a few seconds.
//   - Programs that we started ourselves are not other users.
//   - Command lines are masked before they leave the package.
package host
