package policy

import "strings"

// eachGitSetting calls fn for each setting of a configuration file. Section and key
// are in lower case, the part between them is as written.
func eachGitSetting(configText []byte, fn func(key, value string)) {
	section := ""
	text := strings.ReplaceAll(string(configText), "\\\n", "")
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			end := sectionEnd(line)
			section = sectionName(line[1:end])
			line = strings.TrimSpace(strings.TrimPrefix(line[end:], "]"))
		}
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		key, value, has := strings.Cut(line, "=")
		if !has {
			value = "true"
		}
		fn(section+"."+strings.ToLower(strings.TrimSpace(key)), unquoteGit(value))
	}
}

// sectionEnd finds the bracket that closes a section's header.
func sectionEnd(line string) int {
	quoted := false
	for i := 1; i < len(line); i++ {
		switch {
		case line[i] == '\\':
			i++
		case line[i] == '"':
			quoted = !quoted
		case line[i] == ']' && !quoted:
			return i
		}
	}
	return len(line)
}

// sectionName turns `filter "x"` into "filter.x".
func sectionName(s string) string {
	name, sub, has := strings.Cut(strings.TrimSpace(s), " ")
	if !has {
		return strings.ToLower(name)
	}
	return strings.ToLower(name) + "." + strings.Trim(strings.TrimSpace(sub), `"`)
}

// unquoteGit removes a comment and the quotes of a value.
func unquoteGit(v string) string {
	var b strings.Builder
	quoted := false
	for i := 0; i < len(v); i++ {
		switch c := v[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && i+1 < len(v):
			i++
			b.WriteByte(v[i])
		case (c == '#' || c == ';') && !quoted:
			return strings.TrimSpace(b.String())
		default:
			b.WriteByte(c)
		}
	}
	return strings.TrimSpace(b.String())
}
