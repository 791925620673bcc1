package workspace

import "github.com/agentvfs/avfs/engine"

// Path is a path in a request: bytes, which JSON text cannot always carry. One
// that is not UTF-8 is written as {"b64": ...}.
type Path = engine.Path

// texts turns paths into strings.
func texts(paths []Path) []string {
	if paths == nil {
		return nil
	}
	list := make([]string, len(paths))
	for i, p := range paths {
		list[i] = string(p)
	}
	return list
}
