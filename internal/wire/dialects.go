package wire

// DialectOf names the language spoken at a request path; a query is ignored.
func DialectOf(path string) Dialect { return DialectNone }
