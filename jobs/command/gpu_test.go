package command

import (
	"path/filepath"
	"strings"
	"testing"

	"slotscope/model/compute"
	"slotscope/model/compute/gpu"
)

// TestWrongPluginFolderIsNamed checks that the report states what is expected in a folder that has no plugin.
func TestWrongPluginFolderIsNamed(t *testing.T) {
	wrong := filepath.Join(t.TempDir(), "plugin.txt")
	t.Setenv(gpu.PluginEnv, wrong)
	_, tried := gpu.Find("cuda", "")
	var out strings.Builder
	printReport(&out, compute.Report{Tried: tried})
	if want := "  $PJRT_PLUGIN_LIBRARY_PATH: nothing in " + wrong + "; it must name the folder that contains pjrt_c_api_cuda_plugin.so\n"; !strings.Contains(out.String(), want) {
		t.Errorf("no line %q in:\n%s", want, &out)
	}
}
