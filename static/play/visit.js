// Starts the tour on the first visit. It is a separate entry point, so that the tour need not wait for the playground's other modules.

import { first } from './tour.js';

first();
