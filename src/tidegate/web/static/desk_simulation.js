// The card "How well does this hide the group?": the verdict of the last simulation, and a button that runs one.

const part = (name) => document.querySelector(`#verdict [data-part="${name}"]`);
const whole = (count) => count.toLocaleString("en");

/** Let the card's button run the simulation of the form below. */
export function simulationCard() {
  const form = document.getElementById("audit");
  part("run").hidden = false;
  part("run").addEventListener("click", () => form.requestSubmit());
  return [part("run"), ...form.querySelectorAll("button")];
}

/** Where the progress of a submitted form is shown: beside the button that was pressed. */
export const statusOf = (event) => (event.submitter ? document.getElementById("simulating") : part("running"));

/** Show the summary of a simulation; what is there stays if there is none. */
export function showVerdict(simulation) {
  if (!simulation) return;
  const [verdict, ...details] = simulation.says;
  part("verdict").textContent = verdict;
  part("detail").textContent = details.join(" ");
  const day = new Date(simulation.at).toLocaleString("en-GB", { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", timeZone: "UTC" });
  part("basis").textContent = `${whole(simulation.worlds)} pairs of ${whole(simulation.records)} simulated records, ${day} UTC.`;
  part("run").textContent = "Simulate again";
}
