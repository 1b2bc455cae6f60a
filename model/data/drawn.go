package data

// drawnGrid is a dataset whose images the program draws. It holds every combination of values once.
type drawnGrid struct {
	info *Info
	grid Grid
	draw func(dst []byte, classes []int) // one image
}

func (s drawnGrid) Info() Info { return s.info.clone() }

func (s drawnGrid) identity() string { return s.info.Name }

func (s drawnGrid) Images(dst []byte, index []int) error {
	each := s.info.H * s.info.W * s.info.C
	if err := check(*s.info, index, len(dst), each); err != nil {
		return err
	}
	classes := make([]int, len(s.grid))
	for b, i := range index {
		s.grid.Classes(classes, i)
		s.draw(dst[b*each:(b+1)*each], classes)
	}
	return nil
}

func (s drawnGrid) Classes(dst, index []int) error {
	f := len(s.grid)
	if err := check(*s.info, index, len(dst), f); err != nil {
		return err
	}
	for b, i := range index {
		s.grid.Classes(dst[b*f:(b+1)*f], i)
	}
	return nil
}

func (s drawnGrid) Index(classes []int) (int, error) { return s.info.index(s.grid, classes) }

func (drawnGrid) Close() error { return nil }
