// Package pysource reads Python source without running it: whether it is Python at all, which functions it defines, what
// parameters they take, and whether their bodies read a name.
//
// The lexer (lexer.go, strings.go, numbers.go) makes tokens, fields of f-strings included; the parser (parser.go,
// expressions.go, atoms.go, params.go, statements.go, compound.go, patterns.go) makes a tree of them by the grammar of
// Python 3.14; scope.go follows a name through it.
//
// Invariants:
//
//   - It accepts what CPython's own parser accepts and refuses what that refuses. What only CPython's compiler refuses (a
//     return outside of a function, two parameters of one name) is accepted, as it is by its ast module. One thing is not
//     looked up: whether there is a character of the name in "\N{...}".
//   - It never guesses: a text that is nested deeper or longer than it follows is an error of its own, not an answer.
//   - It is pure and bounded: time and memory grow with the source, and no source crashes it.
package pysource
