// Package models makes model files exist on this machine: it says where a named model comes from, downloads what is
// missing, goes on where an earlier download stopped, and proves what it got where the origin lets it.
//
// Resolve turns what people write (ref.go) into files; Puller.Pull fetches them (pull.go), each by a download (download.go)
// that keeps its bytes in a part file (part.go) and asks through an origin (origin.go). Models that a daemon keeps itself
// are pulled by it (daemon.go).
//
// Invariants:
//
//   - A file stands under its name only when it is whole: bytes go to <name>.part, are checked, and then renamed.
//   - What was fetched before is gone on with only where the origin can say that it is still the same file: by its
//     validator (If-Range), or because the digest of the whole is known. A range that is not the one asked for, or that
//     does not say of which file it is, is thrown away with all before it.
//   - Size and sha256 are checked where they are told, on the way to a file or in the hub's listing (tree.go). A file that
//     they contradict is never given out.
//   - One process writes to a part at a time, and a part is a file: no link is followed.
//   - The token goes to the hub that it is for, over https or to this machine, and to no other host: not to a mirror, and
//     not along a redirect.
//   - No name leads out of the directory that files go to.
//   - Nothing is asked twice for a reason that a second try cannot change; the others are tried again, each time later.
package models
