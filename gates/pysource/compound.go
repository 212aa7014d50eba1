package pysource

// compound reads a compound statement, nil when none comes.
func (p *parser) compound() *node {
	p.enter()
	defer p.leave()
	t := p.tok()
	switch {
	case t.kind == tokenName:
		if t.text == "match" {
			return p.match()
		}
	case p.is("@"):
		return p.decorated()
	case t.kind != tokenKeyword:
	case t.text == "async":
		return p.async()
	case t.text == "if":
		p.at++
		return p.conditional()
	case t.text == "while":
		p.at++
		return &node{kind: nodeWhile, kids: []*node{p.named(), p.block(), p.otherwise()}}
	case t.text == "for":
		return p.loop()
	case t.text == "try":
		return p.attempt()
	case t.text == "with":
		return p.with()
	case t.text == "def":
		return p.function(nil, false)
	case t.text == "class":
		return p.class(nil)
	}
	return nil
}

// block reads a colon and what it opens.
func (p *parser) block() *node {
	p.expect(":")
	block := &node{kind: nodeBlock}
	if p.tok().kind != tokenNewline {
		p.line(block)
		return block
	}
	p.at++
	p.kind(tokenIndent, "an indented block")
	for p.tok().kind != tokenDedent {
		p.statement(block)
	}
	p.at++
	return block
}

// otherwise is an else block, nil when none comes.
func (p *parser) otherwise() *node {
	if !p.accept("else") {
		return nil
	}
	return p.block()
}

// conditional is an if behind its keyword, with what follows it.
func (p *parser) conditional() *node {
	p.enter()
	defer p.leave()
	n := &node{kind: nodeIf, kids: []*node{p.named(), p.block(), nil}}
	if p.accept("elif") {
		n.kids[2] = p.conditional()
	} else {
		n.kids[2] = p.otherwise()
	}
	return n
}

func (p *parser) loop() *node {
	p.expect("for")
	target := p.targets()
	p.expect("in")
	return &node{kind: nodeFor, kids: []*node{p.expressions(), target, p.block(), p.otherwise()}}
}

func (p *parser) async() *node {
	p.expect("async")
	switch {
	case p.is("def"):
		return p.function(nil, true)
	case p.is("for"):
		return p.loop()
	case p.is("with"):
		return p.with()
	}
	p.unexpected("def, for or with")
	return nil
}

// attempt is a try statement.
func (p *parser) attempt() *node {
	p.expect("try")
	n := &node{kind: nodeTry, kids: []*node{p.block()}}
	handlers, groups := 0, 0
	for p.accept("except") {
		handlers++
		if p.accept("*") {
			groups++
			if p.is(":") {
				p.unexpected("a type of exception")
			}
		}
		n.kids = append(n.kids, p.handler())
	}
	if groups > 0 && groups < handlers {
		p.fail("except and except* in one statement")
	}
	if handlers > 0 {
		n.kids = append(n.kids, p.otherwise())
	}
	if p.accept("finally") {
		n.kids = append(n.kids, p.block())
	} else if handlers == 0 {
		p.unexpected("except or finally")
	}
	return n
}

// handler is what follows an except.
func (p *parser) handler() *node {
	n := &node{kind: nodeBlock}
	if !p.is(":") {
		kind := p.list(p.expression)
		n.kids = append(n.kids, kind)
		if p.is("as") {
			if kind.kind == nodeTuple && !kind.parens {
				p.fail("several types of exceptions with a name need parentheses")
			}
			p.at++
			n.kids = append(n.kids, bound(p.identifier()))
		}
	}
	n.kids = append(n.kids, p.block())
	return n
}

// with is a with statement. Its items may stand in parentheses, which an expression may begin with too.
func (p *parser) with() *node {
	p.expect("with")
	items := (*node)(nil)
	if p.is("(") {
		items = p.try(p.itemsInParens)
	}
	if items == nil {
		items = p.items("")
	}
	return &node{kind: nodeWith, kids: append(items.kids, p.block())}
}

func (p *parser) itemsInParens() *node {
	p.expect("(")
	items := p.items(")")
	p.expect(")")
	if !p.is(":") {
		p.unexpected("':'")
	}
	return items
}

// items are those of a with statement; a comma may stand before the end when there is one.
func (p *parser) items(end string) *node {
	items := other()
	for {
		items.kids = append(items.kids, p.expression())
		if p.accept("as") {
			items.kids = append(items.kids, p.stored(p.target()))
		}
		if !p.accept(",") || end != "" && p.is(end) {
			return items
		}
	}
}

// decorated is a function or a class with decorators.
func (p *parser) decorated() *node {
	var decorators []*node
	for p.accept("@") {
		decorators = append(decorators, p.named())
		p.kind(tokenNewline, "the end of the line")
	}
	switch {
	case p.is("class"):
		return p.class(decorators)
	case p.is("async") && p.next(1).text == "def":
		p.at++
		return p.function(decorators, true)
	case p.is("def"):
		return p.function(decorators, false)
	}
	p.unexpected("def or class")
	return nil
}

func (p *parser) function(decorators []*node, async bool) *node {
	fn := &Function{Line: p.tok().line, Async: async, decorators: decorators}
	p.expect("def")
	fn.Name = p.identifier()
	fn.outer = p.typeParams()
	p.expect("(")
	p.params(fn, ")", true)
	p.expect(")")
	if p.accept("->") {
		fn.outer = append(fn.outer, p.expression())
	}
	fn.body = p.block()
	return &node{kind: nodeDef, text: fn.Name, fn: fn}
}

func (p *parser) class(decorators []*node) *node {
	p.expect("class")
	n := &node{kind: nodeClass, text: p.identifier()}
	n.kids = append(decorators, p.typeParams()...)
	if p.is("(") {
		n.kids = append(n.kids, p.arguments(false)...)
	}
	n.kids = append(n.kids, p.block())
	return n
}
