// Package launch owns the processes of engines: it builds their command lines, starts them, tells when they can answer,
// keeps their output, and ends them.
//
// What is true of one engine is data, in its profile; Plan makes a Spec of it and of what is asked for, and Start makes a
// Process of the Spec. Connect makes a Server of an engine that somebody else runs, so that callers need not care;
// FindDaemon finds one that started itself on a port of its choice. IdentityOf says which build in which environment a
// Spec starts, so that results of one are not taken for those of the next.
//
// One goroutine owns the life of a process, from its start to the end of everything it left behind; the methods of Process
// read what it published or leave it a request:
//
//	starting   it runs, and its port does not answer
//	loading    its port answers, and it says that it is not ready, or says nothing
//	ready      its ready check succeeded, and the port is its own
//	stopping   it was asked to end
//	exited     it ended as it was asked to
//	failed     it ended by itself, was not ready in time, or somebody else has its port
//
// Invariants:
//
//   - A command is a list of arguments. No shell reads it.
//   - exited and failed are final, and come with a reason. They are reached when nothing of the process is left, or when
//     the reason names what is.
//   - Reading the output never waits for anything: what cannot be written in time is counted and left out. What is kept
//     is bounded, and its secrets are masked.
//   - On Linux the engine dies with this process, however that ends: the kernel is told so by the thread that starts it,
//     and that thread lives as long as the engine. What a killed run left elsewhere is found by its state file at the next
//     start, and named; only Reap ends it.
//     What of this another system cannot do, Limits says there: the engine does not die with us, its children are not
//     found, and a squatter of its port is not told from it.
//   - A process is taken for what it was only when its start time, too, is the one that was noted: numbers are used again.
//   - A GPU is reported only when a list of devices or the output showed it.
package launch
