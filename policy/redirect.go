package policy

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// redirects notes the files that redirections write and returns where standard
// input then comes from.
func (w *walker) redirects(list []*syntax.Redirect, in input) input {
	for _, r := range list {
		target := token{}
		if r.Word != nil {
			target = w.single(r.Word)
		}
		switch r.Op {
		case syntax.RdrIn:
			if r.N == nil || r.N.Value == "0" {
				in = input{kind: inputFile}
				if strings.HasPrefix(target.certain(), "/dev/fd/") || target.text == "/dev/stdin" {
					in = input{kind: inputPipe}
				}
			}
			w.checkNetworkFile(target)
			w.read(target)
		case syntax.DplIn:
			if r.N == nil || r.N.Value == "0" {
				in = input{kind: inputPipe}
			}
		case syntax.Hdoc, syntax.DashHdoc:
			in = w.heredoc(r, in)
		case syntax.WordHdoc:
			if r.N == nil || r.N.Value == "0" {
				in = input{kind: inputPipe}
				if target.known() || target.wild && !target.dyn {
					in = input{kind: inputLiteral, text: target.text}
				}
			}
		case syntax.DplOut:
			if t := target.certain(); target.known() && (t == "-" || isNumber(strings.TrimSuffix(t, "-"))) {
				continue // a descriptor
			}
			w.write(target, ">&")
		default:
			w.write(target, r.Op.String())
		}
	}
	return in
}

// heredoc returns the text of a here-document, where it is literal.
func (w *walker) heredoc(r *syntax.Redirect, in input) input {
	if r.Hdoc == nil {
		if r.N == nil || r.N.Value == "0" {
			return input{kind: inputLiteral}
		}
		return in
	}
	quoted := false
	for _, p := range r.Word.Parts {
		if lit, ok := p.(*syntax.Lit); !ok || strings.Contains(lit.Value, `\`) {
			quoted = true
		}
	}
	x := &expansion{w: w, src: r.Hdoc}
	for _, p := range r.Hdoc.Parts {
		if lit, ok := p.(*syntax.Lit); ok && quoted {
			x.text(lit.Value)
			continue
		}
		x.part(p, false, true)
	}
	if r.N != nil && r.N.Value != "0" {
		return in
	}
	if x.dyn {
		return input{kind: inputPipe}
	}
	return input{kind: inputLiteral, text: x.cur.String()}
}

// write notes that a file is written.
func (w *walker) write(target token, op string) {
	if w.known {
		return // a comparison, most likely
	}
	it := item{kind: kindWrite, prog: literal(">"), args: []token{target}, via: w.via, loc: w.loc(), opts: noModel}
	it.name, it.base = ">", ">"
	if op != ">" {
		it.src = op + " " + quoteWord(target)
	}
	w.checkNetworkFile(target)
	w.a.add(it)
}

// read notes that a file is read. It counts only where a rule speaks about it.
func (w *walker) read(target token) {
	if w.known {
		return
	}
	it := item{kind: kindRead, prog: literal("<"), args: []token{target}, via: w.via, loc: w.loc(), opts: noModel}
	it.name, it.base = "<", "<"
	it.src = "< " + quoteWord(target)
	w.a.add(it)
}

// checkNetworkFile recognises bash's file names for network connections.
func (w *walker) checkNetworkFile(t token) {
	c := t.certain()
	if strings.HasPrefix(c, "/dev/tcp/") || strings.HasPrefix(c, "/dev/udp/") {
		w.a.floor(RequireApproval, "network-file", w.via, t.text, "bash opens a network connection for this file name")
	}
}

func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
