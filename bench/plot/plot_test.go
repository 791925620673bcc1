package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
)

func chart(values ...float64) Chart {
	c := Chart{Title: "a < b", Unit: "ms", Series: []string{"one"}, Format: func(v float64) string { return fmt.Sprint(v) }}
	for _, v := range values {
		c.Groups = append(c.Groups, Group{Label: fmt.Sprint("value ", v), Bars: []Bar{{v, v / 2, v * 2}}})
	}
	return c
}

// TestSVG checks that the picture is well-formed and shows every value once beside
// its bar, and none for a missing one.
func TestSVG(t *testing.T) {
	svg := chart(1.5, 0, 1700).SVG()
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{">1.5<", ">1700<", "a &lt; b", "logarithmic"} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("the picture lacks %q", want)
		}
	}
	if n := strings.Count(string(svg), `height="11" fill="`+colours[0]); n != 3 {
		t.Errorf("%d bars and legends, want 2 and 1", n)
	}
}

// TestLegend checks that many names take a second line, that nothing of it is cut
// off, and that the bars begin below it.
func TestLegend(t *testing.T) {
	c := chart(1)
	one := c.top()
	for range 9 {
		c.Series = append(c.Series, "a rather long name")
	}
	places := c.legendPlaces()
	for i, at := range places {
		if end := at.x + 16 + charWidth*float64(len(c.Series[i])); end > width {
			t.Errorf("name %d ends at %g of %d", i, end, width)
		}
	}
	if last := places[len(places)-1]; last.y == places[0].y || c.top() <= one || float64(c.top()) < last.y+11 {
		t.Errorf("the legend ends at %g, the bars begin at %d", last.y, c.top())
	}
}

// TestAxis checks both kinds of axes at their ends.
func TestAxis(t *testing.T) {
	for _, c := range []struct {
		chart  Chart
		log    bool
		lo, hi float64
	}{
		{chart(2, 3), false, 0, 6},
		{chart(2, 3000), true, 1, 10_000},
	} {
		ax := c.chart.axis(100)
		if ax.log != c.log || math.Abs(ax.at(c.lo)-ax.left) > 0.01 || math.Abs(ax.at(c.hi)-ax.right) > 0.01 {
			t.Errorf("axis %+v: %g is at %g, %g at %g", ax, c.lo, ax.at(c.lo), c.hi, ax.at(c.hi))
		}
		if ticks := ax.ticks(); len(ticks) < 2 || len(ticks) > 15 {
			t.Errorf("axis %+v has the ticks %v", ax, ticks)
		}
	}
}
