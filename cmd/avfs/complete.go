package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

type completionsCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// run prints a script for the shell, which knows commands and flags.
func (c *completionsCmd) run(a *app) error {
	return a.document(func(w io.Writer, k *kong.Kong) {
		nodes := commandNodes(k.Model.Node)
		switch c.Shell {
		case "bash":
			bashCompletion(w, nodes)
		case "zsh":
			zshCompletion(w, nodes)
		case "fish":
			fishCompletion(w, nodes)
		}
	})
}

// document writes what fn makes of the whole grammar.
func (a *app) document(fn func(w io.Writer, k *kong.Kong)) error {
	k, err := a.parser(commands(), &globals{}, new(bool))
	if err != nil {
		return err
	}
	var text strings.Builder
	fn(&text, k)
	return a.print(textDoc{text.String()}, func(w io.Writer) { _, _ = io.WriteString(w, text.String()) }) // print flushes w, and reports it
}

// textDoc is a text as JSON.
type textDoc struct {
	Text string `json:"text"`
}

// commandNodes lists a node and all below it, those above first.
func commandNodes(n *kong.Node) []*kong.Node {
	list := []*kong.Node{n}
	for _, sub := range n.Children {
		if sub.Type == kong.CommandNode && !sub.Hidden {
			list = append(list, commandNodes(sub)...)
		}
	}
	return list
}

// pathOf is the name of a command, empty for avfs itself.
func pathOf(n *kong.Node) string {
	if n.Type != kong.CommandNode {
		return ""
	}
	return commandName(n)
}

// subsOf lists the commands below a node.
func subsOf(n *kong.Node) []*kong.Node {
	var subs []*kong.Node
	for _, sub := range n.Children {
		if sub.Type == kong.CommandNode && !sub.Hidden {
			subs = append(subs, sub)
		}
	}
	return subs
}

// flagsOf lists the flags that a command takes, those of every command included.
func flagsOf(n *kong.Node) []*kong.Flag {
	var flags []*kong.Flag
	for _, group := range n.AllFlags(true) {
		flags = append(flags, group...)
	}
	return flags
}

// words are the names of what may stand behind a command.
func words(n *kong.Node) (subs, flags []string) {
	for _, sub := range subsOf(n) {
		subs = append(subs, sub.Name)
	}
	for _, f := range flagsOf(n) {
		flags = append(flags, "--"+f.Name)
		if f.Short != 0 {
			flags = append(flags, "-"+string(f.Short))
		}
	}
	return subs, flags
}

// valued lists the flags of every command that have a value in the next word.
func valued(nodes []*kong.Node) string {
	seen := map[string]bool{}
	var list []string
	for _, n := range nodes {
		for _, f := range flagsOf(n) {
			if name := "--" + f.Name; !f.IsBool() && !seen[name] {
				seen[name] = true
				list = append(list, name)
			}
		}
	}
	return strings.Join(list, "|")
}

// shellCase writes the arms that say what may stand behind each command.
func shellCase(w io.Writer, nodes []*kong.Node) {
	for _, n := range nodes {
		subs, flags := words(n)
		fmt.Fprintf(w, "    %q) subs=%q; flags=%q ;;\n", pathOf(n), strings.Join(subs, " "), strings.Join(flags, " "))
	}
}

// bashCompletion writes a function that walks the words up to the cursor. Where a
// command takes paths, bash completes files.
func bashCompletion(w io.Writer, nodes []*kong.Node) {
	fmt.Fprint(w, `# bash completion of avfs: source <(avfs completions bash)
_avfs_words() {
  subs= flags=
  case "$1" in
`)
	shellCase(w, nodes)
	fmt.Fprintf(w, `  esac
}
_avfs() {
  local cur=${COMP_WORDS[COMP_CWORD]} cmd= word subs flags i
  _avfs_words ""
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    case "$word" in
      --) return ;;
      %s) ((i++)) ;;
      -*) ;;
      *)
        [[ " $subs " == *" $word "* ]] || break
        cmd=${cmd:+$cmd }$word
        _avfs_words "$cmd" ;;
    esac
  done
  if [[ $cur == -* ]]; then subs=$flags; fi
  mapfile -t COMPREPLY < <(compgen -W "$subs" -- "$cur")
}
complete -o default -F _avfs avfs
`, valued(nodes))
}

// zshCompletion does the same for zsh.
func zshCompletion(w io.Writer, nodes []*kong.Node) {
	fmt.Fprint(w, `#compdef avfs
# zsh completion of avfs: source <(avfs completions zsh), or a file _avfs in fpath
_avfs_words() {
  subs= flags=
  case "$1" in
`)
	shellCase(w, nodes)
	fmt.Fprintf(w, `  esac
}
_avfs() {
  local cmd= word subs flags
  integer i
  _avfs_words ""
  for ((i = 2; i < CURRENT; i++)); do
    word=$words[i]
    case "$word" in
      --) shift $i words; ((CURRENT -= i)); _normal; return ;;
      %s) ((i++)) ;;
      -*) ;;
      *)
        [[ " $subs " == *" $word "* ]] || break
        cmd=${cmd:+$cmd }$word
        _avfs_words "$cmd" ;;
    esac
  done
  if [[ $words[CURRENT] == -* ]]; then
    compadd -- ${=flags}
  elif [[ -n $subs ]]; then
    compadd -- ${=subs}
  else
    _files
  fi
}
if [[ $funcstack[1] == _avfs ]]; then _avfs "$@"; else compdef _avfs avfs; fi
`, valued(nodes))
}

// fishCompletion writes a line for each command and flag.
func fishCompletion(w io.Writer, nodes []*kong.Node) {
	var paths []string
	for _, n := range nodes {
		if p := pathOf(n); p != "" {
			paths = append(paths, fishText(p))
		}
	}
	fmt.Fprintf(w, `# fish completion of avfs: avfs completions fish | source
function __avfs_at
  set -l cmd
  set -l skip 0
  for word in (commandline -opc)[2..]
    if test $skip = 1
      set skip 0
      continue
    end
    switch $word
      case %s
        set skip 1
      case '-*'
      case '*'
        set -l next (string join ' ' $cmd $word)
        contains -- $next %s; or break
        set cmd $next
    end
  end
  test "$cmd" = "$argv[1]"
end
`, strings.ReplaceAll(valued(nodes), "|", " "), strings.Join(paths, " "))
	for _, n := range nodes {
		at := fmt.Sprintf("complete -c avfs -n %s", fishText("__avfs_at "+fishText(pathOf(n))))
		for _, sub := range subsOf(n) {
			fmt.Fprintf(w, "%s -f -a %s -d %s\n", at, sub.Name, fishText(sub.Help))
		}
		for _, f := range flagsOf(n) {
			fmt.Fprintf(w, "%s -l %s", at, f.Name)
			if f.Short != 0 {
				fmt.Fprintf(w, " -s %c", f.Short)
			}
			if !f.IsBool() {
				fmt.Fprint(w, " -r")
			}
			fmt.Fprintf(w, " -d %s\n", fishText(f.Help))
		}
	}
}

// fishText is a word in fish's quotes.
func fishText(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}
