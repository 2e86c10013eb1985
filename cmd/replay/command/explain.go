package command

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/eagergc/eagergc/cmd/replay/view"
)

func newExplain() *cobra.Command {
	var (
		at time.Duration
		s  setting
	)
	cmd := &cobra.Command{
		Use:   "explain FILE --policy P --at TIME",
		Short: "Say why a policy did or did not collect at a moment of a recording",
		Long: `explain replays a workload under a policy. For one moment of the recording, it shows
when the policy was last asked, what it saw, what it answered and why, and the
cycles before and after. TIME is on the recording's clock, as replay info shows
it: pauses of the replay do not count.`,
		Example:           `  replay explain my.arrows --policy cudajl --limit 1.5x --cycle 10ms --at 2.5s`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeTraces,
		RunE: func(cmd *cobra.Command, files []string) error {
			one, err := s.cell(files[0])
			if err != nil {
				return err
			}
			if w := one.workload; at < 0 || at > w.Span {
				return fmt.Errorf("--at %v: %s runs from 0 to %v", at, w.Name, w.Span)
			}
			_, log, err := one.run(true)
			if err != nil {
				return err
			}
			_, err = io.WriteString(cmd.OutOrStdout(), view.Explain(one.contender, log, at))
			return err
		},
	}
	s.onePolicy(cmd, "")
	s.oneLimit(cmd)
	s.oneCost(cmd)
	cmd.Flags().DurationVar(&at, "at", 0, "`time` on the recording's clock")
	_ = cmd.MarkFlagRequired("at")
	return cmd
}
