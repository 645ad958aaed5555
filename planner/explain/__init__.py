"""Why an answer is what it is: what is in the way of an infeasible spec, and what another choice or wish would cost."""
