package tree

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// snapshot is a root with what it must hold for ever.
type snapshot struct {
	root  Ref
	model map[string]string
}

// modelTest applies random batches to a tree and to a map and compares them.
type modelTest struct {
	t     *testing.T
	rnd   *rand.Rand
	store *memStore
	now   snapshot
	old   []snapshot
	keep  bool // old roots stay readable; otherwise dead nodes are deleted
	key   func() string
	value func() string
}

// TestModel compares batches of every kind with a map: contents, shape, the
// nodes reported dead, the difference to the old root, and old roots.
func TestModel(t *testing.T) {
	seeds := uint64(24)
	if testing.Short() {
		seeds = 6
	}
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			m := &modelTest{
				t: t, rnd: rand.New(rand.NewPCG(seed, 0)), store: newMemStore(),
				now: snapshot{model: map[string]string{}}, keep: seed%2 == 0,
			}
			m.key = []func() string{m.fileKey, m.shortKey, m.longKey}[seed/2%3]
			m.value = []func() string{m.smallValue, m.mixedValue}[seed/6%2]
			if seed%4 > 1 {
				m.store.shape = shape{node: 320, min: 320 / 3}
				m.key, m.value = m.fileKey, m.tinyValue
			}
			for range 30 {
				m.step()
			}
			for _, s := range m.old {
				m.store.check(t, s.root)
				if !maps.Equal(m.store.dump(t, s.root), s.model) {
					t.Fatal("an old root changed")
				}
			}
			m.empty()
		})
	}
}

// fileKey is like the keys of a file system: inode, kind, suffix.
func (m *modelTest) fileKey() string {
	key := binary.BigEndian.AppendUint64(nil, uint64(m.rnd.IntN(3000)))
	switch kind := byte(m.rnd.IntN(3)); kind {
	case 0:
		return string(append(key, kind))
	case 1:
		return string(append(key, kind)) + fmt.Sprintf("file-%d.go", m.rnd.IntN(9))
	default:
		return string(binary.BigEndian.AppendUint64(append(key, kind), uint64(m.rnd.IntN(9))))
	}
}

// shortKey makes keys that are prefixes of each other and hold zero bytes.
func (m *modelTest) shortKey() string {
	b := make([]byte, 1+m.rnd.IntN(4))
	for i := range b {
		b[i] = []byte{0, 1, 'a', 'b', 0xfe, 0xff}[m.rnd.IntN(6)]
	}
	return string(b)
}

// longKey makes keys up to the limit that differ late, so that separators are
// long and a branch has few children.
func (m *modelTest) longKey() string {
	prefix := strings.Repeat("long/", m.rnd.IntN(3)*90)
	return prefix + fmt.Sprintf("%0*d", 1+m.rnd.IntN(100), m.rnd.IntN(4000))
}

func (m *modelTest) smallValue() string {
	return strings.Repeat(string(rune('a'+m.rnd.IntN(26))), m.rnd.IntN(120))
}

func (m *modelTest) tinyValue() string {
	return strings.Repeat(string(rune('a'+m.rnd.IntN(26))), m.rnd.IntN(24))
}

// mixedValue is sometimes larger than a node, and sometimes as large as can be.
func (m *modelTest) mixedValue() string {
	n := m.rnd.IntN(60)
	switch m.rnd.IntN(200) {
	case 0, 1, 2, 3:
		n = m.rnd.IntN(2 * NodeSize)
	case 4:
		n = MaxValue - m.rnd.IntN(2)*m.rnd.IntN(MaxValue)
	}
	return strings.Repeat(string(rune('a'+m.rnd.IntN(26))), n)
}

// batch returns changes of one character: few or many, spread or clustered,
// mostly puts or mostly deletes.
func (m *modelTest) batch() []Change {
	changes := map[string]Change{}
	deletes := []int{0, 10, 50, 95}[m.rnd.IntN(4)]
	add := func(key string) {
		c := put(key, m.value())
		c.Delete = m.rnd.IntN(100) < deletes
		changes[key] = c
	}
	for range []int{1, 2, 20, 200, 1500}[m.rnd.IntN(5)] {
		add(m.key())
	}
	if keys := slices.Sorted(maps.Keys(m.now.model)); len(keys) > 0 && m.rnd.IntN(3) == 0 {
		lo := m.rnd.IntN(len(keys))
		hi := lo + m.rnd.IntN(len(keys)-lo) + 1
		for _, key := range keys[lo:hi] {
			add(key)
		}
	}
	return sorted(changes)
}

func (m *modelTest) step() {
	m.t.Helper()
	list := m.batch()
	before := m.now
	after := maps.Clone(before.model)
	for _, c := range list {
		if c.Delete {
			delete(after, string(c.Key))
		} else {
			after[string(c.Key)] = string(c.Value)
		}
	}
	m.store.dead = nil
	root := m.store.apply(m.t, before.root, list...)
	m.now = snapshot{root, after}
	m.compare(before)
	if !m.keep {
		m.store.drop()
		m.store.check(m.t, root)
	} else if m.rnd.IntN(8) == 0 {
		m.old = append(m.old, before)
	}
}

// compare proves the current root against the model and against the root before.
func (m *modelTest) compare(before snapshot) {
	t := m.t
	t.Helper()
	m.store.check(t, m.now.root)
	if !maps.Equal(m.store.dump(t, m.now.root), m.now.model) {
		t.Fatal("the tree differs from the model")
	}
	if (len(m.now.model) == 0) != m.now.root.IsZero() {
		t.Fatal("an empty tree has the zero root, and no other")
	}
	if maps.Equal(before.model, m.now.model) != (before.root == m.now.root) {
		t.Fatal("the root changes if and only if the content does")
	}
	compareDead(t, m.store, before.root, m.now.root)
	compareDiff(t, m.store, before, m.now)
	compareDiff(t, m.store, m.now, before)
	m.seek()
}

// compareDead proves that the nodes reported dead are exactly those that old
// has and new has not.
func compareDead(t testing.TB, s *memStore, old, new Ref) {
	t.Helper()
	want, kept := s.nodes(t, old), s.nodes(t, new)
	for ref := range kept {
		delete(want, ref)
	}
	for _, ref := range s.dead {
		if want[ref] == nil {
			t.Fatalf("node %d reported dead twice or while in use", ref.ID)
		}
		delete(want, ref)
	}
	if len(want) > 0 {
		t.Fatalf("%d dead nodes not reported", len(want))
	}
}

// compareDiff proves that Diff reports what distinguishes the models, in order.
func compareDiff(t testing.TB, s *memStore, a, b snapshot) {
	t.Helper()
	want := map[string][2]string{}
	for k, v := range a.model {
		if w, ok := b.model[k]; !ok {
			want[k] = [2]string{"=" + v, ""}
		} else if v != w {
			want[k] = [2]string{"=" + v, "=" + w}
		}
	}
	for k, v := range b.model {
		if _, ok := a.model[k]; !ok {
			want[k] = [2]string{"", "=" + v}
		}
	}
	got := map[string][2]string{}
	last := ""
	show := func(b []byte) string {
		if b == nil {
			return ""
		}
		return "=" + string(b)
	}
	err := Diff(t.Context(), s, a.root, b.root, func(key, old, new []byte) error {
		if string(key) <= last {
			t.Fatalf("diff went from %x to %x", last, key)
		}
		last = string(key)
		got[last] = [2]string{show(old), show(new)}
		return nil
	})
	if err != nil || !maps.Equal(got, want) {
		t.Fatal("diff differs from the models", err, len(got), len(want))
	}
}

// seek compares Get and Seek at random keys, present and absent.
func (m *modelTest) seek() {
	keys := slices.Sorted(maps.Keys(m.now.model))
	for range 20 {
		key := m.key()
		if len(keys) > 0 && m.rnd.IntN(2) == 0 {
			key = keys[m.rnd.IntN(len(keys))]
		}
		value, ok, err := Get(m.t.Context(), m.store, m.now.root, []byte(key))
		want, exists := m.now.model[key]
		if err != nil || ok != exists || string(value) != want || ok != (value != nil) {
			m.t.Fatalf("get %x: %v %v", key, ok, err)
		}
		c := NewCursor(m.store, m.now.root)
		found := c.Seek(m.t.Context(), []byte(key))
		i, _ := slices.BinarySearch(keys, key)
		for ; i < len(keys) && found && m.rnd.IntN(50) > 0; i++ {
			if string(c.Key()) != keys[i] || string(c.Value()) != m.now.model[keys[i]] {
				m.t.Fatalf("cursor at %x, want %x", c.Key(), keys[i])
			}
			found = c.Next(m.t.Context())
		}
		if found != (i < len(keys)) || found != c.Valid() || c.Err() != nil {
			m.t.Fatal("cursor ends elsewhere than the model", c.Err())
		}
	}
}

// empty deletes everything and proves that nothing remains in use.
func (m *modelTest) empty() {
	changes := map[string]Change{}
	for key := range m.now.model {
		changes[key] = del(key)
	}
	m.store.dead = nil
	before := m.now
	m.now = snapshot{m.store.apply(m.t, before.root, sorted(changes)...), map[string]string{}}
	m.compare(before)
	if m.store.drop(); !m.keep && len(m.store.records) > 0 {
		m.t.Fatalf("%d nodes left of an empty tree", len(m.store.records))
	}
}
