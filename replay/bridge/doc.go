// Package bridge says a generating request in the dialect of another engine.
//
// A request is read into a Request, which has no dialect (read_*.go), and written from it (write_*.go); there is one
// pair of files for each of chat, Messages, Gemini and Ollama. Responses and Ollama's /api/generate are read only. What
// an answer becomes in the next turn of a conversation is in answer.go.
//
// Invariants:
//
//   - It does no I/O and reads no clock: the same request gives the same bytes.
//   - Nothing of a request disappears in silence. A field that is not understood, and one the target has no place for,
//     is a Change that is lost; one that is carried in another form is a Change that is not. Each names its path in the
//     request as it was recorded, and the reason.
//   - Text, schemas, arguments and numbers keep their bytes: numbers are not recomputed, members are not reordered.
//   - From one dialect to another and back a request of what both can say is the same Request again.
//   - A request in the dialect of its target is not written anew. Of chat, what engines spell differently is told as edits
//     (spelling.go, respell*.go), each with its reason: a field is recognized by the profiles of engines alone, one that the
//     target spells so stays, and so does all of which its profile says nothing.
package bridge
