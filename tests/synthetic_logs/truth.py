"""What a synthetic log is made of, and what is known to be true of it."""

from __future__ import annotations

from dataclasses import dataclass

#: Every failure that can be planted, and none.
KINDS = (
    'healthy',
    'spike',
    'burst',
    'nan_sticks',
    'masked_nan',
    'norm_overflow',
    'finite_divergence',
    'amp_skip',
    'not_learning',
)
#: Ways to print; the text formats know epochs or only iterations.
FORMATS = (
    'mmcv_epoch_text',
    'mmcv_iter_text',
    'mmcv_json',
    'mmengine_epoch_text',
    'mmengine_iter_text',
    'mmengine_scalars',
    'steps',
)


@dataclass(frozen=True)
class Options:
    """How the training runs and how it is printed; drawn from the seed.

    `window` counts the entries averaged in a printed value (mmcv 1.x: the interval);
    `epoch_length` is in iterations; `noise` scales the spread of one step.
    """

    seed: int
    kind: str
    format: str
    layout: str
    interval: int
    window: int
    accumulation: int
    num_rows: int
    epoch_length: int
    schedule: str
    warmup: int
    noise: float
    has_norm: bool
    has_header: bool
    is_fine_tune: bool
    is_validated: bool
    is_amp: bool

    @property
    def num_iterations(self) -> int:
        """Return how many iterations it takes to print `num_rows` rows."""
        rows_per_epoch = self.epoch_length // self.interval
        whole, rest = divmod(self.num_rows, rows_per_epoch)
        if not rest:
            return (whole - 1) * self.epoch_length + rows_per_epoch * self.interval
        return whole * self.epoch_length + rest * self.interval

    @property
    def is_mmengine(self) -> bool:
        """Return whether a value is averaged as mmengine's LogProcessor does."""
        return self.format.startswith('mmengine')


@dataclass(frozen=True)
class Truth:
    """What was planted, as far as the printed numbers can tell.

    Rows are 0-based training rows. The onset is `onset_row`, the first row that
    contains a bad step. Where the print alone cannot say which row that is, it allows
    any row from `earliest_row` to `latest_row`; a reader that reports early signs as
    an event of their own does so from `warning_row` on. `end_row` is the last row
    that the failure reaches, None for good.
    `first_terms` are the answers that the print supports: one for a planted term that
    shows, None among them where no term, or no single one, can be named.
    """

    kind: str
    verdicts: tuple[str, ...]
    onset_row: int | None = None
    onset_line: int | None = None
    earliest_row: int | None = None
    latest_row: int | None = None
    warning_row: int | None = None
    end_row: int | None = None
    first_terms: tuple[str | None, ...] = (None,)
    recovered: bool = True

    @property
    def verdict(self) -> str:
        """Return the verdict, the most likely one where two can be argued for."""
        return self.verdicts[0]

    @property
    def first_term(self) -> str | None:
        """Return the planted term if the print can name it."""
        return self.first_terms[0] if len(self.first_terms) == 1 else None


@dataclass(frozen=True)
class SyntheticLog:
    """A log as a user would have it, and its truth."""

    content: bytes
    options: Options
    truth: Truth
    lines: tuple[int, ...]  # physical line of each row, from 1

    @property
    def file_name(self) -> str:
        """Return a name such as the framework would choose."""
        names = {'mmengine_scalars': 'scalars.json', 'steps': 'steps.jsonl'}
        suffix = '.log.json' if self.options.format == 'mmcv_json' else '.log'
        return names.get(self.options.format, f'20230102_030405{suffix}')
