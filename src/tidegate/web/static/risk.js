// The risk lab: one file per part. The API calculates all numbers.

import { startAdvice } from "./risk_advice.js";
import { startBaskets } from "./risk_baskets.js";
import { startConversion } from "./risk_conversion.js";
import { startOperators } from "./risk_operators.js";
import { view } from "./api.js";

const given = view();
startConversion(given);
startOperators();
startBaskets();
startAdvice();
