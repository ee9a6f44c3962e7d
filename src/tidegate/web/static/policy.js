// Policy page: move the focus to the result of an action.

(document.getElementById("refusal") ?? document.getElementById("preview") ?? document.getElementById("report") ?? document.getElementById("saved"))?.focus();
