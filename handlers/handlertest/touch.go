package handlertest

import (
	"context"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// Hand sends touches with its own timestamps, so that taps do not depend on the speed of the machine.
type Hand struct {
	b   Browser
	Now time.Time
}

// TouchScreen makes the browser emulate a phone.
func (b Browser) TouchScreen() *Hand {
	b.T.Helper()
	b.Do(chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile, chromedp.EmulateTouch))
	return &Hand{b, time.Now()}
}

// Place is a point of the window, x and y in CSS pixels.
type Place [2]float64

// fingers sends one touch event, 20 ms after the last; without places all fingers are lifted.
func (h *Hand) fingers(kind input.DispatchTouchEventType, at ...Place) {
	h.b.T.Helper()
	h.Now = h.Now.Add(20 * time.Millisecond)
	p := input.DispatchTouchEventParams{Type: kind, TouchPoints: []*input.TouchPoint{}, Timestamp: input.TimeSinceEpoch(float64(h.Now.UnixMicro()) / 1e6)}
	for i, xy := range at {
		id := float64(i)
		p.TouchPoints = append(p.TouchPoints, &input.TouchPoint{X: xy[0], Y: xy[1], ID: &id})
	}
	ctx, stop := context.WithTimeout(h.b.Ctx, patience)
	defer stop()
	if _, err := chromedp.Call(ctx, input.DispatchTouchEvent, p); err != nil {
		h.b.T.Fatal(err)
	}
}

// Drag puts fingers down, rests, and moves them to other places in ten steps.
func (h *Hand) Drag(rest time.Duration, from, to []Place) {
	h.b.T.Helper()
	h.fingers(input.DispatchTouchEventTypeTouchStart, from[0])
	if len(from) > 1 {
		h.fingers(input.DispatchTouchEventTypeTouchStart, from...)
	}
	h.Now = h.Now.Add(rest)
	for i := 1; i <= 10; i++ {
		at := make([]Place, len(from))
		for j := range from {
			for k := range at[j] {
				at[j][k] = from[j][k] + (to[j][k]-from[j][k])*float64(i)/10
			}
		}
		h.fingers(input.DispatchTouchEventTypeTouchMove, at...)
	}
	h.fingers(input.DispatchTouchEventTypeTouchEnd)
}

// Rest pauses as a user would: Chromium makes no click of a touch immediately after a drag.
func (h *Hand) Rest() {
	const pause = 400 * time.Millisecond
	time.Sleep(pause)
	h.Now = h.Now.Add(pause)
}

func (h *Hand) Tap(at Place) {
	h.b.T.Helper()
	h.fingers(input.DispatchTouchEventTypeTouchStart, at)
	h.fingers(input.DispatchTouchEventTypeTouchEnd)
}
