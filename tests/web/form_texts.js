/** The form's sentences and estimates, for tests that compare them with Python. */

/** The sentences about every question of a description, in the language of the texts. */
export async function sentences(base, content, texts, language) {
  const { readDescription } = await import(`${base}/description.js`);
  const { operatorFor } = await import(`${base}/operators/index.js`);
  const { Wording } = await import(`${base}/wording.js`);
  const { poll, questions } = readDescription(content);
  const words = new Wording(texts, poll, language);
  return Object.fromEntries([...questions].map(([name, question]) => [name, words.sentences(name, question, operatorFor(question))]));
}

/** The estimates of the simulator from reports. */
export async function estimates(base, content, reports) {
  const { readDescription } = await import(`${base}/description.js`);
  const { operatorFor } = await import(`${base}/operators/index.js`);
  const { estimateMean, estimateShares } = await import(`${base}/estimate.js`);
  const entries = [...readDescription(content).questions].map(([name, question]) => {
    const operator = operatorFor(question);
    return [name, operator.ordered ? estimateMean(operator, reports[name]) : estimateShares(operator, reports[name])];
  });
  return Object.fromEntries(entries);
}
