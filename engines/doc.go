// Package engines knows the inference engines: how each is recognized, what it tells about itself, and how it spells the
// options of a request.
//
// What is true of one engine is data: a Profile, one JSON file each in profiles/, embedded, checked when it is loaded and
// replaceable by a file of the user's own. The code here only knows how to ask (prober), in which order to believe
// (Identify) and how to read what a profile points at (metadata).
//
// Identify asks in a fixed order and stops at the first proof:
//
//  1. the host of a hosted API: nothing is asked;
//  2. a native namespace in /metrics, at the start of a line;
//  3. a version document in the form of one engine, with its name in the listing of models;
//  4. a name that a server gives itself, in /v1/models, /health, /.well-known/serviceinfo and /props;
//  5. documents whose shape only one engine has;
//  6. documents of engines that give themselves no name, asked only of a server that lists models.
//
// Invariants:
//
//   - A verdict rests on evidence that is quoted in one line. Without evidence it is "unknown", never a guess; the port
//     is no evidence, nor is an HTML page.
//   - A field that was not learned is nil. Nothing here turns "not told" into a value.
//   - Probes are reads. Their number, their time and the size of their answers are bounded; a server that accepts
//     connections and never answers costs two time-outs. A path that makes an engine work is never asked of that engine.
//   - Credentials go to the origin of the base URL and nowhere else: redirects are not followed.
//   - A label that the user gives is believed as it is, and changes nothing about requests.
package engines
