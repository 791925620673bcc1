// Package plot draws grouped horizontal bars with their ranges as an SVG picture.
package plot

import (
	"encoding/xml"
	"fmt"
	"math"
	"strings"
)

// Chart is one picture. A value of 0 or less is missing.
type Chart struct {
	Title  string
	Unit   string
	Series []string // names of the bars in each group
	Groups []Group
	Format func(float64) string // of the values beside the bars
}

// Group is a label with one bar for each series.
type Group struct {
	Label string
	Bars  []Bar
}

// Bar is a value with the range that was measured.
type Bar struct{ Value, Min, Max float64 }

// Sizes in pixels.
const (
	width      = 900
	barHeight  = 13
	groupGap   = 12
	top        = 62
	bottom     = 42
	right      = 90 // room for a value beside the longest bar
	charWidth  = 6.6
	legendSkip = 30
	legendLine = 18
)

// colours can be told apart with any colour vision (Okabe and Ito).
var colours = [...]string{"#0072B2", "#E69F00", "#009E73", "#CC79A7", "#999999", "#56B4E9", "#D55E00", "#F0E442", "#000000"}

// SVG returns the picture. Where the values span more than a decade the axis is
// logarithmic and says so.
func (c Chart) SVG() []byte {
	var b strings.Builder
	left := c.labelWidth()
	height := c.top() + bottom
	for _, g := range c.Groups {
		height += groupGap + barHeight*present(g)
	}
	ax := c.axis(left)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="Helvetica, Arial, sans-serif" font-size="12">`+"\n",
		width, height, width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width, height)
	text(&b, 12, 22, `font-size="15" font-weight="bold"`, c.Title)
	c.legend(&b)
	c.grid(&b, ax, height)
	y := float64(c.top())
	for _, g := range c.Groups {
		y = c.group(&b, ax, g, left, y)
	}
	b.WriteString("</svg>\n")
	return []byte(b.String())
}

func present(g Group) (n int) {
	for _, bar := range g.Bars {
		if bar.Value > 0 {
			n++
		}
	}
	return n
}

func (c Chart) labelWidth() float64 {
	longest := 0
	for _, g := range c.Groups {
		longest = max(longest, len(g.Label))
	}
	return 24 + charWidth*float64(longest)
}

// legendPlaces is where the names of the series stand, in lines as wide as the picture.
func (c Chart) legendPlaces() (places []struct{ x, y float64 }) {
	x, y := 12.0, 34.0
	for _, name := range c.Series {
		w := 16 + charWidth*float64(len(name))
		if x+w > width && x > 12 {
			x, y = 12, y+legendLine
		}
		places = append(places, struct{ x, y float64 }{x, y})
		x += legendSkip + w
	}
	return places
}

// top is where the first group begins.
func (c Chart) top() int {
	places := c.legendPlaces()
	if len(places) == 0 {
		return top
	}
	return top + int(places[len(places)-1].y-places[0].y)
}

func (c Chart) legend(b *strings.Builder) {
	for i, at := range c.legendPlaces() {
		fmt.Fprintf(b, `<rect x="%.0f" y="%.0f" width="11" height="11" fill="%s"/>`+"\n", at.x, at.y, colours[i%len(colours)])
		text(b, at.x+16, at.y+10, "", c.Series[i])
	}
}

// group draws one group below y and returns where the next one begins.
func (c Chart) group(b *strings.Builder, ax axis, g Group, left, y float64) float64 {
	height := float64(barHeight * present(g))
	text(b, left-8, y+height/2+4, `text-anchor="end"`, g.Label)
	for i, bar := range g.Bars {
		if bar.Value <= 0 {
			continue
		}
		end, mid := ax.at(bar.Value), y+barHeight/2.0
		fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%d" fill="%s"/>`+"\n",
			left, y+1, math.Max(end-left, 1), barHeight-2, colours[i%len(colours)])
		lo, hi := ax.at(bar.Min), ax.at(bar.Max)
		if hi-lo > 1 {
			fmt.Fprintf(b, `<path d="M%.1f %.1fH%.1fM%.1f %.1fv6M%.1f %.1fv6" stroke="#222222" fill="none"/>`+"\n", lo, mid, hi, lo, mid-3, hi, mid-3)
		}
		text(b, math.Max(end, hi)+5, mid+4, `font-size="11"`, c.Format(bar.Value))
		y += barHeight
	}
	return y + groupGap
}

func (c Chart) grid(b *strings.Builder, ax axis, height int) {
	base := float64(height - bottom)
	for _, v := range ax.ticks() {
		x := ax.at(v)
		fmt.Fprintf(b, `<path d="M%.1f %dV%.1f" stroke="#dddddd"/>`+"\n", x, c.top()-6, base)
		text(b, x, base+15, `text-anchor="middle" font-size="11" fill="#555555"`, c.Format(v))
	}
	unit := c.Unit
	if ax.log {
		unit += ", logarithmic"
	}
	text(b, (ax.left+ax.right)/2, base+33, `text-anchor="middle" fill="#555555"`, unit+"; the lines on the bars go from the least to the greatest sample")
}

// text writes s with its special characters escaped.
func text(b *strings.Builder, x, y float64, attrs, s string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" %s>`, x, y, attrs)
	// A strings.Builder accepts every write.
	_ = xml.EscapeText(b, []byte(s))
	b.WriteString("</text>\n")
}

// axis maps values to horizontal positions.
type axis struct {
	left, right float64 // pixels
	lo, hi      float64 // values there
	log         bool
}

func (c Chart) axis(left float64) axis {
	lo, hi := math.Inf(1), 0.0
	for _, g := range c.Groups {
		for _, bar := range g.Bars {
			if bar.Value > 0 {
				lo, hi = min(lo, bar.Min, bar.Value), max(hi, bar.Max, bar.Value)
			}
		}
	}
	ax := axis{left: left, right: width - right, hi: hi}
	if hi > 10*lo {
		ax.log = true
		ax.lo, ax.hi = math.Pow(10, math.Floor(math.Log10(lo))), math.Pow(10, math.Ceil(math.Log10(hi)))
	}
	return ax
}

func (a axis) at(v float64) float64 {
	share := v / a.hi
	if a.log {
		share = math.Log(math.Max(v, a.lo)/a.lo) / math.Log(a.hi/a.lo)
	}
	return a.left + share*(a.right-a.left)
}

func (a axis) ticks() (ticks []float64) {
	if a.log {
		for v := a.lo; v <= a.hi*1.001; v *= 10 {
			ticks = append(ticks, v)
		}
		return ticks
	}
	step := math.Pow(10, math.Floor(math.Log10(a.hi)))
	if a.hi/step < 4 {
		step /= 2
	}
	for v := 0.0; v <= a.hi; v += step {
		ticks = append(ticks, v)
	}
	return ticks
}
