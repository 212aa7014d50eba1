package pysource

// expressions is a list of expressions with commas: one of them, or a tuple. Stars may stand before them.
func (p *parser) expressions() *node { return p.list(p.starExpression) }

// list reads one item, or a tuple of several with commas.
func (p *parser) list(item func() *node) *node {
	first := item()
	if !p.is(",") {
		return first
	}
	tuple := &node{kind: nodeTuple, kids: []*node{first}}
	for p.accept(",") && p.startsExpression() {
		tuple.kids = append(tuple.kids, item())
	}
	return tuple
}

// startsExpression reports whether an item of a list can begin here.
func (p *parser) startsExpression() bool {
	t := p.tok()
	switch t.kind {
	case tokenName, tokenNumber, tokenString:
		return true
	case tokenKeyword:
		switch t.text {
		case "None", "True", "False", "lambda", "not", "await":
			return true
		}
	case tokenOp:
		switch t.text {
		case "(", "[", "{", "-", "+", "~", "...", "*":
			return true
		}
	}
	return false
}

// starExpression is an expression, or a star with one.
func (p *parser) starExpression() *node {
	if p.accept("*") {
		return &node{kind: nodeStar, kids: []*node{p.binary(0)}}
	}
	return p.expression()
}

// starNamed is starExpression where := may stand.
func (p *parser) starNamed() *node {
	if p.is("*") {
		return p.starExpression()
	}
	return p.named()
}

// named is an expression that may be given a name by :=.
func (p *parser) named() *node {
	if p.startsNaming() {
		name := p.identifier()
		p.expect(":=")
		return other(p.expression(), bound(name))
	}
	return p.expression()
}

func (p *parser) startsNaming() bool {
	return p.tok().kind == tokenName && p.next(1).kind == tokenOp && p.next(1).text == ":="
}

// expression is a conditional expression or a lambda.
func (p *parser) expression() *node {
	p.enter()
	defer p.leave()
	if p.is("lambda") {
		return p.lambda()
	}
	n := p.disjunction()
	if !p.accept("if") {
		return n
	}
	condition := p.disjunction()
	p.expect("else")
	return other(condition, n, p.expression())
}

func (p *parser) lambda() *node {
	p.expect("lambda")
	fn := &Function{Line: p.tok().line}
	p.params(fn, ":", false)
	p.expect(":")
	fn.body = p.expression()
	return &node{kind: nodeLambda, fn: fn}
}

func (p *parser) disjunction() *node {
	n := p.conjunction()
	for p.accept("or") {
		n = other(n, p.conjunction())
	}
	return n
}

func (p *parser) conjunction() *node {
	n := p.inversion()
	for p.accept("and") {
		n = other(n, p.inversion())
	}
	return n
}

func (p *parser) inversion() *node {
	p.enter()
	defer p.leave()
	if p.accept("not") {
		return other(p.inversion())
	}
	n := p.binary(0)
	for p.comparison() {
		n = other(n, p.binary(0))
	}
	return n
}

// comparison takes the operator of a comparison if one comes.
func (p *parser) comparison() bool {
	t := p.tok()
	switch {
	case t.kind == tokenOp && (t.text == "<" || t.text == ">" || t.text == "==" || t.text == ">=" || t.text == "<=" || t.text == "!="):
		p.at++
	case p.is("is"):
		p.at++
		p.accept("not")
	case p.is("in"):
		p.at++
	case p.is("not") && p.next(1).kind == tokenKeyword && p.next(1).text == "in":
		p.at += 2
	default:
		return false
	}
	return true
}

// levels are the binary operators from the loosest to the tightest.
var levels = [][]string{{"|"}, {"^"}, {"&"}, {"<<", ">>"}, {"+", "-"}, {"*", "/", "//", "%", "@"}}

// binary reads operators of a level and of the tighter ones.
func (p *parser) binary(level int) *node {
	if level == len(levels) {
		return p.factor()
	}
	n := p.binary(level + 1)
	for p.isOneOf(levels[level]) {
		p.at++
		n = other(n, p.binary(level+1))
	}
	return n
}

func (p *parser) isOneOf(ops []string) bool {
	for _, op := range ops {
		if p.is(op) {
			return true
		}
	}
	return false
}

func (p *parser) factor() *node {
	p.enter()
	defer p.leave()
	if p.isOneOf([]string{"+", "-", "~"}) {
		p.at++
		return other(p.factor())
	}
	n := p.awaited()
	if p.accept("**") {
		return other(n, p.factor())
	}
	return n
}

func (p *parser) awaited() *node {
	if p.accept("await") {
		return other(p.primary())
	}
	return p.primary()
}

// primary is an atom with attributes, calls and subscripts behind it.
func (p *parser) primary() *node {
	n := p.atom()
	for {
		switch {
		case p.accept("."):
			p.identifier()
			n = &node{kind: nodeAttr, kids: []*node{n}}
		case p.is("("):
			n = other(append([]*node{n}, p.arguments(true)...)...)
		case p.accept("["):
			n = &node{kind: nodeSub, kids: []*node{n, p.slices()}}
			p.expect("]")
		default:
			return n
		}
	}
}

// slices are the items between the brackets of a subscript.
func (p *parser) slices() *node {
	first := p.slice()
	if !p.is(",") {
		return first
	}
	tuple := &node{kind: nodeTuple, kids: []*node{first}}
	for p.accept(",") && !p.is("]") {
		tuple.kids = append(tuple.kids, p.slice())
	}
	return tuple
}

// slice is one item between the brackets of a subscript.
func (p *parser) slice() *node {
	if p.is("*") {
		return p.starExpression()
	}
	s := other()
	if !p.is(":") {
		first := p.named()
		if !p.is(":") {
			return first
		}
		s.kids = append(s.kids, first)
	}
	for range 2 {
		if !p.accept(":") {
			break
		}
		if !p.is(":") && !p.is(",") && !p.is("]") {
			s.kids = append(s.kids, p.expression())
		}
	}
	return s
}

// arguments are those of a call or a class, with their parentheses.
func (p *parser) arguments(generator bool) []*node {
	p.expect("(")
	a := arguments{p: p, generator: generator}
	for !p.is(")") {
		a.one()
		if !p.is(")") {
			p.expect(",")
			a.commas = true
		}
	}
	p.expect(")")
	if a.comprehension && (len(a.all) > 1 || a.commas) {
		p.fail("a generator expression among other arguments needs parentheses")
	}
	return a.all
}

// arguments reads a list of arguments.
type arguments struct {
	p                      *parser
	all                    []*node
	generator              bool // a generator expression may stand without parentheses
	keyword, doubleStarred bool // one has been read
	comprehension, commas  bool
}

func (a *arguments) one() {
	p := a.p
	switch {
	case p.accept("**"):
		a.doubleStarred = true
		a.all = append(a.all, p.expression())
	case p.accept("*"):
		if a.doubleStarred {
			p.fail("an unpacked argument follows an unpacked mapping")
		}
		a.all = append(a.all, p.expression())
	case p.tok().kind == tokenName && p.next(1).kind == tokenOp && p.next(1).text == "=":
		p.at += 2
		a.keyword = true
		a.all = append(a.all, p.expression())
	default:
		a.positional()
	}
}

func (a *arguments) positional() {
	p := a.p
	n := p.named()
	if p.startsComprehension() {
		if !a.generator {
			p.unexpected("')'")
		}
		a.comprehension = true
		n = p.comprehension(n)
	} else if a.keyword || a.doubleStarred {
		p.fail("a positional argument follows a keyword argument")
	}
	a.all = append(a.all, n)
}
