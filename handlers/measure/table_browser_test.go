package measure_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"slotscope/handlers/handlertest"
	"slotscope/handlers/measure"
)

// A file dropped on the form or chosen is measured; the page shows the progress.
func TestMeasureAFile(t *testing.T) {
	rows := []string{"z_0,z_1,hue,shape"}
	for i := range 200 {
		rows = append(rows, fmt.Sprintf("%d,%d,%s,%d", i%3, i/3%4, []string{"red", "green", "blue"}[i%3], i/3%4))
	}
	path := filepath.Join(t.TempDir(), "mine.csv")
	if err := os.WriteFile(path, []byte(strings.Join(rows, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	b := handlertest.Open(t, measure.Tables{})
	b.Do(
		chromedp.Navigate(b.URL+"/measure"),
		chromedp.SetUploadFiles("#file", []string{path}),
		chromedp.Evaluate[chromedp.Void](`(() => {
			const files = new DataTransfer();
			files.items.add(document.querySelector('#file').files[0]);
			document.querySelector('#file').value = '';
			const form = document.querySelector('.table-form');
			form.dispatchEvent(new DragEvent('drop', { dataTransfer: files, cancelable: true }));
		})()`),
	)
	b.Until("the dropped file is in the form", `document.querySelector('#file').files[0]?.name === 'mine.csv'`)
	b.Do(chromedp.SetValue("#factors", "hue,shape"))
	b.Click("[data-testid=table-go]")
	b.Until("scores appear", `document.querySelector('[data-testid=table-scores]')?.textContent.includes('InfoM')`)
	b.Until("every factor is related to every latent", `document.querySelectorAll('[data-testid=table-relations] td').length === 4`)
}
