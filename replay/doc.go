// Package replay sends recorded and traced workloads again.
//
// A workload (workload.go) is an ordered list of requests with the instants at which they are meant to be sent. It comes
// from a recorded run (workload_run.go) or from a file (workload_file.go; one format_*.go for each format). Files are
// read and written record by record (workload_record.go), and what leaves may have its secrets masked first
// (workload_redact.go).
//
// Invariants of workloads:
//
//   - What a file says is data: names in it become no paths, and nothing in it is run.
//   - A file is judged whole before its first request is sent or stored; what is wrong is told with line, field and
//     value. What it unpacks to is bounded.
//   - Items are in the order of their instants, whatever the order of the file was, and the number that moved is told.
//   - Hash covers order, requests, instants and conversations, and nothing else: neither ids nor the format.
//   - A request that cannot be sent as it was (its body was cut) is left out and told, never sent in part.
//
// A plan (plan.go, pace.go, change.go) is the exact list of what is made of a workload: conversations, targets, instants
// and changes. A driver (drive.go) sends it with the measured client of package proxy, and a tally (drive_tally.go) counts
// what becomes of it from the records.
//
// Invariants of plans and drivers:
//
//   - The plan is made and hashed before the first byte is sent; instants are absolute, from one start.
//   - A request is sent once. Only a 503 that says when to come back is followed by another, an exchange of its own.
//   - What was changed of a request is in its record; the bytes outside of a change are those of the workload.
//   - A driver that ends early cuts what runs, waits for it, and says why. No goroutine outlives Run.
package replay
