package memfs

import "sync"

// blockSize is how much of a file lies in one piece, in bytes.
const blockSize = 128 << 10

// content is the bytes of a file. A block may be shorter than its share of the
// file, or missing; the rest of it reads as zeros.
type content struct {
	mu     sync.RWMutex // guards what follows
	size   int64
	blocks [][]byte
}

func (c *content) len() int64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.size
}

// read fills p from off on, and returns how much there was.
func (c *content) read(p []byte, off int64) int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if off >= c.size {
		return 0
	}
	p = p[:min(int64(len(p)), c.size-off)]
	for done := 0; done < len(p); {
		at := off + int64(done)
		in := at % blockSize
		part := p[done:min(len(p), done+int(blockSize-in))]
		n := 0
		if b := c.blocks[at/blockSize]; in < int64(len(b)) {
			n = copy(part, b[in:])
		}
		clear(part[n:])
		done += len(part)
	}
	return len(p)
}

// write puts p at off.
func (c *content) write(p []byte, off int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.extend(off + int64(len(p)))
	for len(p) > 0 {
		i, in := off/blockSize, int(off%blockSize)
		part := p[:min(len(p), blockSize-in)]
		b := c.blocks[i]
		if need := in + len(part); need > len(b) {
			b = append(b, make([]byte, need-len(b))...)
			c.blocks[i] = b
		}
		copy(b[in:], part)
		p, off = p[len(part):], off+int64(len(part))
	}
}

// grow makes the content at least size long.
func (c *content) grow(size int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.extend(size)
}

// extend is grow for a caller that holds the lock.
func (c *content) extend(size int64) {
	if size <= c.size {
		return
	}
	c.size = size
	for int64(len(c.blocks))*blockSize < size {
		c.blocks = append(c.blocks, nil)
	}
}

// truncate makes the content exactly size long.
func (c *content) truncate(size int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if size >= c.size {
		c.extend(size)
		return
	}
	c.size = size
	keep := int((size + blockSize - 1) / blockSize)
	clear(c.blocks[keep:])
	c.blocks = c.blocks[:keep]
	if rest := size % blockSize; rest > 0 && rest < int64(len(c.blocks[keep-1])) {
		c.blocks[keep-1] = c.blocks[keep-1][:rest:rest]
	}
}
