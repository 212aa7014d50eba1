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
//   - A request is sent once. Only a 503 that says when to come back, and a 400 that wants a field called otherwise or left
//     out (drive_lessons.go), are followed by another, an exchange of its own.
//   - What was changed of a request is in its record; the bytes outside of a change are those of the workload.
//   - A request in the dialect of its target is changed only where the target is known to spell a field otherwise
//     (bridge.Endpoint.Respell), and then asks for the same. That is no other plan: its hash stays.
//   - A driver that ends early cuts what runs, waits for it, and says why. No goroutine outlives Run.
//
// A stand-in (serve.go, one serve_*.go for each part) is the other way round: it answers requests from recorded exchanges with
// the player of package sim.
//
// Invariants of stand-ins:
//
//   - Without Forward there is nothing by which a request could leave: the files dial nothing and know no client.
//   - An answer is of the very request, confirmed beyond its hash, or of one that differs where a stated rule lets it. What
//     is not recorded is a miss that says what is nearest, never an answer that is merely near.
//   - What is sent is what was recorded: status, head, body bytes, the pieces in which they were read, trailers, kind of end.
//     Credentials in heads stay masked. How far the instants were kept is counted for every write.
//   - Each recorded answer is given once before one is given again. Bodies are read when they are asked for.
//
// A revalidation (revalidate.go) judges recorded answers again, by package gates and, where asked, by commands of the user's
// (external.go).
//
// Invariants of revalidations:
//
//   - Nothing is sent: no file of it knows a client or a connection. The evidence is read and never written.
//   - What comes of it does not depend on the number of workers.
//   - A failure of the past stays one. What cannot be read whole, or judged, is no pass.
//   - One failing member takes the rates of its wave away.
//
// A suite (suite.go, suite_judge.go) sends the cases of package scenario to one target, wave by wave, makes later turns of
// the answers to earlier ones, and has each case judged when its wave has ended. A validation (validate.go,
// validate_compare.go) is its report, and what that comes to beside the report of a reference.
//
// Invariants of suites:
//
//   - A case that was cut is in no report, nor is its wave; a report is complete only when every planned case is in it.
//   - Two reports that do not ask the same under the same conditions, or of which a case failed, have no ratios.
package replay
