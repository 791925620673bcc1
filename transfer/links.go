package transfer

import "sync"

// links finds the names of one inode. The first to claim an inode makes it; the
// others wait and link to what was made.
type links[K comparable, V any] struct {
	mu sync.Mutex // guards m
	m  map[K]*linked[V]
}

// linked is an inode with several names. made is valid once done is closed.
type linked[V any] struct {
	done chan struct{}
	made *V
}

// claim returns what was made of the inode k, or nil and a function that the
// caller must call with what it made, or with nil if it failed.
func (l *links[K, V]) claim(k K) (made *V, settle func(*V)) {
	for {
		l.mu.Lock()
		if l.m == nil {
			l.m = map[K]*linked[V]{}
		}
		e := l.m[k]
		if e == nil {
			e = &linked[V]{done: make(chan struct{})}
			l.m[k] = e
			l.mu.Unlock()
			return nil, func(v *V) { l.settle(k, e, v) }
		}
		l.mu.Unlock()
		<-e.done
		if e.made != nil {
			return e.made, nil
		}
	}
}

func (l *links[K, V]) settle(k K, e *linked[V], v *V) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.made = v; v == nil {
		delete(l.m, k)
	}
	close(e.done)
}
