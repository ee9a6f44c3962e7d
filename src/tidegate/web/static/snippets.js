// Adds options to code snippets of the service: in the last parentheses in Python, at the end on the command line.

const SAFE = /^[A-Za-z0-9_@%+=:,./-]+$/;

/** Quote a text for the shell. */
export const shell = (text) => (SAFE.test(text) ? text : `'${text.replaceAll("'", `'"'"'`)}'`);

/** Write a value in Python; strings, numbers and lists are the same as in JSON. */
export const python = (value) => JSON.stringify(value);

/** withOptions(codes, ['"a"', 'method="em"'], ["a", "--method", "em"]) */
export function withOptions(codes, pythonOptions, shellOptions) {
  const code = codes.Python, inside = code.slice(0, -1);
  if (!pythonOptions.length) return codes;
  const comma = inside.endsWith("(") ? "" : ", ";
  return { Python: `${inside}${comma}${pythonOptions.join(", ")})`, "Command line": [codes["Command line"], ...shellOptions].join(" ") };
}
