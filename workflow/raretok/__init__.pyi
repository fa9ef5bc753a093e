# What `raretok` offers, for type checkers and editors; at run time __init__.py finds the same names when asked for.
from raretok.frequency import FrequencyGroups as FrequencyGroups
from raretok.frequency import agg_alpha as agg_alpha
from raretok.frequency import count_targets as count_targets
from raretok.frequency import log_unigram as log_unigram
from raretok.frequency import start_bias as start_bias
from raretok.losses import OutputLoss as OutputLoss
from raretok.metrics import accuracy as accuracy
from raretok.metrics import align_similarity as align_similarity
from raretok.metrics import best_temperature as best_temperature
from raretok.metrics import isotropy as isotropy
from raretok.metrics import mean_cosine as mean_cosine
from raretok.metrics import mean_reciprocal_rank as mean_reciprocal_rank
from raretok.metrics import min_p_margin as min_p_margin
from raretok.metrics import nucleus_margin as nucleus_margin
from raretok.metrics import perplexity as perplexity
from raretok.metrics import recall as recall
from raretok.metrics import tail_mass as tail_mass
from raretok.metrics import target_ranks as target_ranks
from raretok.metrics import token_nll as token_nll
from raretok.parts import AGG as AGG
from raretok.parts import AGPS as AGPS
from raretok.parts import Adversarial as Adversarial
from raretok.parts import Contrastive as Contrastive
from raretok.parts import CosReg as CosReg
from raretok.parts import CrossEntropy as CrossEntropy
from raretok.parts import Freeze as Freeze
from raretok.parts import Softminus as Softminus
from raretok.parts import Threshold as Threshold
from raretok.parts import UnigramDivergence as UnigramDivergence
from raretok.parts import Unlikelihood as Unlikelihood

__version__: str
