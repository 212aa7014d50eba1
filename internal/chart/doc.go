// Package chart draws figures as SVG: sparklines and the waterfall of one exchange for the page, plots for the report.
//
// Invariants:
//
//   - A chart is a pure function of numbers that others derived; it computes no metric and reads no clock.
//   - Its markup is ours alone: every text that came from outside is made printable and escaped (canvas.text), so that a
//     model's name can break neither the chart nor the page around it. There is no script, style attribute, link or font
//     file in it.
//   - It is readable in light, in dark and in grey: colors are CSS variables (Style), series differ in lightness and in
//     dash or mark as well as in hue, and axes carry their units.
//   - An absent number is a gap, never a zero.
package chart
