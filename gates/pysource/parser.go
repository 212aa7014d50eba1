package pysource

import (
	"errors"
	"fmt"
)

// What is not followed; whether such a source is Python is not known.
var (
	ErrTooDeep = errors.New("the source is nested too deeply to be read")
	ErrTooLong = errors.New("the source is too long to be read")
)

// maxSource bounds the source in bytes.
const maxSource = 1 << 20

// maxDepth bounds how deep the parser calls itself. CPython gives up on such sources too, elsewhere in each version.
const maxDepth = 2000

// nodeKind is the kind of a node.
type nodeKind uint8

const (
	nodeOther    nodeKind = iota // an expression or a statement of which only the parts matter
	nodeName                     // text, store
	nodeConst                    // number: text; None, True, False, ...: text; string: no text
	nodeAttr                     // object
	nodeSub                      // object, index
	nodeStar                     // starred expression
	nodeTuple                    // items
	nodeList                     // items
	nodeComp                     // first iterable, first target, conditions and further clauses, elements
	nodeLambda                   // fn
	nodeDef                      // fn, bound name
	nodeClass                    // decorators and bases; body last; text
	nodeBlock                    // statements
	nodeAssign                   // value, targets
	nodeAug                      // value, target
	nodeGlobal                   // text of each kid
	nodeNonlocal                 // text of each kid
	nodeIf                       // condition, body, else
	nodeFor                      // iterable, target, body, else
	nodeWhile                    // condition, body, else
	nodeTry                      // blocks and handlers
	nodeWith                     // items and targets, body
	nodeMatch                    // subject, cases
	nodeCase                     // pattern, guard, body
)

// node is a node of the tree. A part that is not there is a nil kid.
type node struct {
	kind   nodeKind
	text   string
	store  bool // a name that is bound, not read
	parens bool // stood in parentheses of its own
	kids   []*node
	fn     *Function
}

func other(kids ...*node) *node { return &node{kids: kids} }

// parser makes the tree. It reports errors by panicking with a *SyntaxError or ErrTooDeep, which Parse takes up.
type parser struct {
	toks  []token
	at    int
	depth int
}

// Module is a source that is Python.
type Module struct{ body *node }

// Parse reads a source. The error is a *SyntaxError, ErrTooDeep or ErrTooLong.
func Parse(src string) (m *Module, err error) {
	if len(src) > maxSource {
		return nil, ErrTooLong
	}
	defer func() {
		switch e := recover().(type) {
		case nil:
		case *SyntaxError:
			m, err = nil, e
		case error:
			if !errors.Is(e, ErrTooDeep) {
				panic(e)
			}
			m, err = nil, ErrTooDeep
		default:
			panic(e)
		}
	}()
	p := &parser{toks: lex(src)}
	body := &node{kind: nodeBlock}
	for p.tok().kind != tokenEnd {
		p.statement(body)
	}
	return &Module{body: body}, nil
}

func (p *parser) tok() token { return p.toks[p.at] }

// next is the token n places on, the end for places past it.
func (p *parser) next(n int) token { return p.toks[min(p.at+n, len(p.toks)-1)] }

func (p *parser) fail(format string, args ...any) {
	panic(&SyntaxError{Line: p.tok().line, Text: fmt.Sprintf(format, args...)})
}

// unexpected refuses the token that comes.
func (p *parser) unexpected(want string) {
	what := p.tok().text
	switch p.tok().kind {
	case tokenNewline:
		what = "end of line"
	case tokenIndent:
		what = "indentation"
	case tokenDedent:
		what = "end of the block"
	}
	p.fail("%s where %s is expected", what, want)
}

// is reports whether the operator or keyword comes.
func (p *parser) is(text string) bool {
	t := p.tok()
	return (t.kind == tokenOp || t.kind == tokenKeyword) && t.text == text
}

// soft reports whether the soft keyword comes.
func (p *parser) soft(word string) bool { return p.tok().kind == tokenName && p.tok().text == word }

// accept takes the operator or keyword if it comes.
func (p *parser) accept(text string) bool {
	if !p.is(text) {
		return false
	}
	p.at++
	return true
}

func (p *parser) expect(text string) {
	if !p.accept(text) {
		p.unexpected("'" + text + "'")
	}
}

// kind takes a token of the kind.
func (p *parser) kind(kind tokenKind, what string) token {
	t := p.tok()
	if t.kind != kind {
		p.unexpected(what)
	}
	p.at++
	return t
}

func (p *parser) identifier() string { return p.kind(tokenName, "a name").text }

// bound is a name that is bound here.
func bound(name string) *node { return &node{kind: nodeName, text: name, store: true} }

// enter counts a level of nesting; the caller defers leave.
func (p *parser) enter() {
	if p.depth++; p.depth > maxDepth {
		panic(ErrTooDeep)
	}
}

func (p *parser) leave() { p.depth-- }

// try runs a rule and takes back what it took when it fails.
func (p *parser) try(rule func() *node) (n *node) {
	at, depth := p.at, p.depth
	defer func() {
		if e := recover(); e != nil {
			if _, syntax := e.(*SyntaxError); !syntax {
				panic(e)
			}
			p.at, p.depth, n = at, depth, nil
		}
	}()
	return rule()
}

// stored marks an expression as the target of an assignment, or refuses it.
func (p *parser) stored(n *node) *node {
	switch n.kind {
	case nodeName:
		n.store = true
	case nodeAttr, nodeSub:
	case nodeStar:
		if n.kids[0].kind == nodeStar {
			p.fail("two stars before a target")
		}
		p.stored(n.kids[0])
	case nodeTuple, nodeList:
		for _, kid := range n.kids {
			p.stored(kid)
		}
	default:
		p.fail("this cannot be assigned to")
	}
	return n
}

// deleted marks an expression as the target of a del, or refuses it.
func (p *parser) deleted(n *node) {
	switch n.kind {
	case nodeStar:
		p.fail("a starred expression cannot be deleted")
	case nodeTuple, nodeList:
		for _, kid := range n.kids {
			p.deleted(kid)
		}
	default:
		p.stored(n)
	}
}

// single refuses targets of which a statement takes one only.
func (p *parser) single(n *node) *node {
	if n.kind != nodeName && n.kind != nodeAttr && n.kind != nodeSub {
		p.fail("only a single target is possible here")
	}
	return p.stored(n)
}
