package workspace

import (
	"encoding/json"
	"unicode/utf8"
)

// Path is a path in a request: bytes, which JSON text cannot always carry. One
// that is not UTF-8 is written as {"b64": ...}.
type Path string

type exactPath struct {
	Bytes []byte `json:"b64"`
}

// MarshalJSON writes a string, or an object with the bytes in base64.
func (p Path) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(p)) {
		return json.Marshal(string(p))
	}
	return json.Marshal(exactPath{[]byte(p)})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (p *Path) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '{' {
		var e exactPath
		err := json.Unmarshal(b, &e)
		*p = Path(e.Bytes)
		return err
	}
	return json.Unmarshal(b, (*string)(p))
}

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
