// Begins the tour on the first visit: by itself, because it needs nothing of the playground's other modules, which are many.

import { first } from './tour.js';

first();
